//! A disk that remembers what was written to it, and what of that was flushed: one file of a FUSE file
//! system that this process serves, under a loop device.
//!
//! The protocol is the kernel's, <https://docs.kernel.org/filesystems/fuse/index.html>, as little of it as one
//! file of a fixed size needs.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// What the disk was told.
#[derive(Clone, Debug)]
pub enum Told {
    /// These bytes, from here on.
    Write(usize, Vec<u8>),
    /// All that was written is to be there for good.
    Flush,
}

/// The disk, and a file system mounted from it.
pub struct Disk {
    kind: String,
    folder: tempfile::TempDir,
    device: Option<String>,
    log: Arc<Mutex<Vec<Told>>>,
    before: Vec<u8>,
    server: Option<JoinHandle<()>>,
}

impl Disk {
    /// Makes one with a file system of this kind; or says why there is none.
    pub fn new(kind: &str, size: u64) -> Result<Disk, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        for part in ["fuse", "mount"] {
            std::fs::create_dir(folder.path().join(part)).map_err(|e| e.to_string())?;
        }
        let image = folder.path().join("image");
        let made = File::create(&image).and_then(|file| file.set_len(size));
        made.map_err(|e| e.to_string())?;
        let force: &[&str] = if kind == "ext4" {
            &["-q", "-F"]
        } else {
            &["-q"]
        };
        run(Command::new(format!("mkfs.{kind}")).args(force).arg(&image))?;
        let before = std::fs::read(&image).map_err(|e| e.to_string())?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let fuse = folder.path().join("fuse");
        let server = serve(&fuse, before.clone(), Arc::clone(&log))?;
        let mut disk = Disk {
            kind: kind.to_owned(),
            folder,
            device: None,
            log,
            before,
            server: Some(server),
        };
        let mut losetup = Command::new("losetup");
        losetup.args(["--direct-io=on", "-f", "--show"]);
        let device = run(losetup.arg(fuse.join("disk")))?.trim().to_owned();
        disk.device = Some(device.clone());
        let mut mount = Command::new("mount");
        run(mount.args(["-t", kind, &device]).arg(disk.path()))?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// How much it has been told so far.
    pub fn told(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// Takes the disk away; gives back all that it was told.
    pub fn end(&mut self) -> Vec<Told> {
        self.take_down();
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// What was on it before it was told anything.
    pub fn before(&self) -> &[u8] {
        &self.before
    }

    /// Mounts an image in its place, for as long as `look` takes.
    pub fn mounted<T>(&self, image: &[u8], look: impl FnOnce(&Path) -> T) -> Result<T, String> {
        let (file, place) = (self.folder.path().join("cut"), self.path());
        std::fs::write(&file, image).map_err(|e| e.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", &self.kind, "-o", "loop"]);
        run(mount.arg(&file).arg(&place))?;
        let looked = look(&place);
        run(Command::new("umount").arg(&place))?;
        Ok(looked)
    }

    fn take_down(&mut self) {
        let _ = run(Command::new("umount").arg(self.path()));
        if let Some(device) = self.device.take() {
            let _ = run(Command::new("losetup").args(["-d", &device]));
        }
        let _ = unmount(self.folder.path().join("fuse"), UnmountFlags::DETACH);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.take_down();
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

const ROOT: u64 = 1;
const DISK: u64 = 2;
/// `ENOENT` and `ENOSYS`, as replies give them.
const NONE: i32 = -2;
const UNKNOWN: i32 = -38;

fn serve(at: &Path, bytes: Vec<u8>, log: Arc<Mutex<Vec<Told>>>) -> Result<JoinHandle<()>, String> {
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let mut fuse = fuse.map_err(|e| format!("/dev/fuse: {e}"))?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        fuse.as_raw_fd()
    );
    let options = std::ffi::CString::new(options).unwrap();
    let mounted = mount("vws-test", at, "fuse", MountFlags::NODEV, &*options);
    mounted.map_err(|e| format!("mount a fuse: {e}"))?;
    Ok(std::thread::spawn(move || {
        let mut server = Server { bytes, log };
        let mut request = vec![0; 1 << 18];
        // It fails when the file system is gone.
        while let Ok(length) = fuse.read(&mut request) {
            let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap());
            let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
            let (code, unique, node) = (word(4), long(8), long(16));
            let Some(reply) = server.answer(code, node, &request[40..length]) else {
                continue;
            };
            let (error, body) = match reply {
                Ok(body) => (0, body),
                Err(error) => (error, Vec::new()),
            };
            let mut out = u32::try_from(16 + body.len())
                .unwrap()
                .to_le_bytes()
                .to_vec();
            out.extend(error.to_le_bytes());
            out.extend(unique.to_le_bytes());
            out.extend(body);
            let _ = fuse.write(&out);
        }
    }))
}

struct Server {
    bytes: Vec<u8>,
    log: Arc<Mutex<Vec<Told>>>,
}

/// Numbers one after the other, as the kernel lays them out.
fn packed(longs: &[u64], words: &[u32]) -> Vec<u8> {
    let longs = longs.iter().flat_map(|long| long.to_le_bytes());
    longs
        .chain(words.iter().flat_map(|word| word.to_le_bytes()))
        .collect()
}

impl Server {
    /// The answer to a request; `None` where none is wanted.
    fn answer(&mut self, code: u32, node: u64, body: &[u8]) -> Option<Result<Vec<u8>, i32>> {
        let long = |at: usize| {
            let number = u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
            usize::try_from(number).unwrap()
        };
        let size = || u32::from_le_bytes(body[16..20].try_into().unwrap()) as usize;
        Some(Ok(match code {
            // LOOKUP
            1 if body == b"disk\0" => {
                let entry = packed(&[DISK, 0, 0, 0], &[0, 0]);
                [entry, self.attributes(DISK)].concat()
            }
            1 => return Some(Err(NONE)),
            // FORGET, INTERRUPT, BATCH_FORGET
            2 | 36 | 42 => return None,
            // GETATTR, SETATTR
            3 | 4 => [packed(&[0], &[0, 0]), self.attributes(node)].concat(),
            // OPEN, OPENDIR
            14 | 27 => packed(&[0], &[0, 0]),
            // READ
            15 => {
                let end = (long(8) + size()).min(self.bytes.len());
                self.bytes[long(8)..end].to_vec()
            }
            // WRITE
            16 => {
                let (at, data) = (long(8), &body[40..40 + size()]);
                self.bytes[at..at + data.len()].copy_from_slice(data);
                self.log
                    .lock()
                    .unwrap()
                    .push(Told::Write(at, data.to_vec()));
                packed(&[], &[u32::try_from(data.len()).unwrap(), 0])
            }
            // STATFS
            17 => vec![0; 80],
            // FSYNC
            20 => {
                self.log.lock().unwrap().push(Told::Flush);
                Vec::new()
            }
            // RELEASE, FLUSH, RELEASEDIR, ACCESS
            18 | 25 | 29 | 34 => Vec::new(),
            // INIT: version 7.31, writes of up to 128 KiB
            26 => {
                let mut answer = packed(&[], &[7, 31, 1 << 17, 0, 0, 1 << 17, 1]);
                answer.resize(64, 0);
                answer
            }
            _ => return Some(Err(UNKNOWN)),
        }))
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let size = self.bytes.len() as u64;
        let (size, mode) = match node {
            ROOT => (0, 0o040_755),
            _ => (size, 0o100_600),
        };
        let longs = [node, size, size / 512, 0, 0, 0];
        packed(&longs, &[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])
    }
}
