# shellcheck shell=bash

command_checks() {
    SHARDFEED_COMMAND=$plain/src/cli/shardfeed pytests "tests of the command" "$python" 1 tests/cli
}
