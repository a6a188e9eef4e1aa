#include "cli/command.h"

int main(int argc, char** argv) {
    return cli::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
