#!/usr/bin/env bash
# What users of C do with the installed library, as the documentation says it.
#   users.sh PREFIX FOLDER examples      the programs of examples/c, which pages show, and of docs/c.md
#   users.sh PREFIX FOLDER statically    a program with libshardfeed.a and what pkg-config --static names
#   users.sh PREFIX FOLDER cmake         find_package(Shardfeed)
#   users.sh PREFIX FOLDER subproject    the repository as a subproject of another one; and a program with -static
# FOLDER is for what is made. PREFIX/lib has the libraries, shared and static.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
prefix=$1 folder=$2/$3
rm -rf "$folder" && mkdir -p "$folder"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
cd "$folder"

# block FILE LANGUAGE NUMBER: the text of a code block of a Markdown file.
block() {
    awk -v start="\`\`\`$2" -v number="$3" \
        '/^```/ {inside = 0} inside {print} $0 == start {inside = ++n == number}' "$1"
}

# One red pixel and its class, and the same as a ZIP file.
base64 -d >b.png <<<iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC
cp b.png b.jpg
printf 7 >b.cls
tar -cf b.tar b.png b.cls
tar -cf a.tar b.jpg b.cls
python3 -m zipfile -c b.zip b.cls
block "$repository/docs/c.md" c 1 >example.c
prints_the_class() { LD_LIBRARY_PATH=$prefix/lib "$@" b.tar | grep -x 'b is of class 7'; }

examples() {
    local name page flags
    # Nothing of the libraries that this one is made with.
    read -ra flags <<<"$(pkg-config --cflags shardfeed)"
    [ "${flags[*]}" = "-I$prefix/include" ] || { echo "flags for the compiler: ${flags[*]}"; return 1; }
    read -ra flags <<<"$(pkg-config --cflags --libs shardfeed)"
    for name in 01_stream:README.md 02_zip:docs/random-access.md 03_batches:docs/batches.md 04_members:docs/members.md \
        05_source:docs/opener.md 06_writer:docs/writing.md; do
        page=${name#*:} name=${name%:*}
        # The page shows the file whole, but for the comment on top.
        sed '1,/\*\//d' "$repository/examples/c/$name.c" | diff - <(block "$repository/$page" c 1)
        cc -Wall -Wextra -Werror "$repository/examples/c/$name.c" "${flags[@]}" -o "$name"
    done
    export LD_LIBRARY_PATH=$prefix/lib
    ./01_stream a.tar | grep -x "b: $(stat -c %s b.jpg) bytes of jpg"
    ./02_zip b.zip b.cls | grep -x 7
    ./04_members <b.tar | grep -x 'b.cls: 1 bytes'
    cp a.tar c.tar
    ./05_source . 'data://{a,c}.tar' | sort | uniq -c | grep -x ' *2 b'
    ./06_writer . | grep -x './train-0002.tar: 50 samples'
    ./03_batches b.tar | grep -x '1 images in 12288 bytes, the first one of class 7'
    cc -Wall -Wextra -Werror example.c "${flags[@]}" -o example
    prints_the_class ./example
    if ./example missing.tar; then return 1; fi
}

statically() {
    # Every library that is named is taken as an archive, but for those of libc, of which Debian has no
    # archives for programs that use a shared one, and ISA-L, of which it has none.
    local flags
    read -ra flags <<<"$(pkg-config --static --cflags --libs shardfeed |
        sed -E 's/-l([a-z0-9+]+)/-l:lib\1.a/g; s/-l:lib(m|pthread|isal)\.a/-l\1/g')"
    cc example.c "${flags[@]}" -o example
    prints_the_class ./example
    local shared
    shared=$(ldd example | grep -oE 'lib[a-z0-9_+]+\.so' | grep -vxE 'lib(c|m|gcc_s|isal)\.so' || true)
    [ -z "$shared" ] || { echo "not linked statically: $shared"; return 1; }
}

cmake() {
    block "$repository/docs/c.md" cmake 1 >CMakeLists.txt
    cat >>CMakeLists.txt <<'END'
add_executable(static example.c)
target_link_libraries(static Shardfeed::shardfeed_static)
END
    command cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix"
    command cmake --build build
    prints_the_class build/example
    prints_the_class build/static
    if ldd build/static | grep libshardfeed; then return 1; fi
    # Another minor version is not taken.
    sed -i 's/Shardfeed 0.1/Shardfeed 0.2/' CMakeLists.txt
    if command cmake -S . -B other -DCMAKE_PREFIX_PATH="$prefix" 2>output; then return 1; fi
    grep 'compatible with requested version "0.2"' output
}

subproject() {
    block "$repository/docs/c.md" meson 1 >meson.build
    mkdir subprojects && ln -s "$repository" subprojects/shardfeed
    # As quick to build as can be. The program with -static below needs archives, ISA-L has none, and it
    # can load no libcurl.
    meson setup build -Doptimization=1 -Ddebug=false -Dshardfeed:b_pch=true -Dunity=on -Dshardfeed:isal=disabled \
        -Dshardfeed:curl=disabled -Dshardfeed:default_library=both --prefix "$PWD/installed" --libdir lib \
        --force-fallback-for shardfeed | tee output
    if grep -i warning output; then return 1; fi
    meson introspect --tests build | grep -Fx '[]'
    ninja -C build example | tee output
    if grep -i warning output; then return 1; fi
    build/example b.tar | grep -x 'b is of class 7'
    meson install -C build --quiet
    rm -rf build
    export PKG_CONFIG_PATH=$PWD/installed/lib/pkgconfig
    local flags
    read -ra flags <<<"$(pkg-config --static --cflags --libs shardfeed)"
    cc -static example.c "${flags[@]}" -o static
    prints_the_class ./static
    if ldd static; then return 1; fi
}

"$3"
