# shellcheck shell=bash
# What the sources look like, and what is written down beside them.

tracked() { git ls-files -- "$@"; }
formatted() { tracked '*.cpp' 'src/*.h' 'tests/*.h' | xargs clang-format --dry-run --Werror; }
# Only builds with -Dfuzz=true compile the mutators, and no stage makes one.
mutators() {
    local file files
    files=$(git grep -l SHF_LIBFUZZER -- 'tests/fuzz/*.cpp') || return 1
    for file in $files; do
        clang++ -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Werror -DSHF_LIBFUZZER \
            -Iinclude -Isrc -Itests "$file" || return 1
    done
}
lint_checks() {
    check "mutators of fuzz targets" mutators
    check "clang-format" formatted
    check "ruff" "$environment/bin/ruff" check .
    check "ruff format" "$environment/bin/ruff" format --check .
    check "mypy" "$environment/bin/mypy" bindings/python/shardfeed
}
docs_checks() {
    check "the table of options" "$python" scripts/option_table.py
    check "the site" env NO_MKDOCS_2_WARNING=1 "$environment/bin/mkdocs" build --strict --quiet --site-dir "$build/site"
}
