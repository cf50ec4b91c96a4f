//! Open directories: what tools did there counts before a base moves, and before anybody answers.
