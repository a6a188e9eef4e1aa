# Files that tests read, written by the tests: tar shards, a ZIP file, .npy arrays. And short words for
# what many tests do.

# A member of a tar (ustar), padded to blocks.
function _tar_member(name::String, data::Vector{UInt8})
    header = zeros(UInt8, 512)
    put(at, text) = copyto!(header, at + 1, codeunits(text), 1, ncodeunits(text))
    octal(value, digits) = string(value; base=8, pad=digits)
    put(0, name)
    put(100, "0000644\0")
    put(108, "0000000\0")
    put(116, "0000000\0")
    put(124, octal(length(data), 11) * "\0")
    put(136, "00000000000\0")
    put(148, "        ")
    put(156, "0")
    put(257, "ustar\0" * "00")
    put(148, octal(sum(Int, header), 6) * "\0 ")
    return vcat(header, data, zeros(UInt8, mod(-length(data), 512)))
end

bytes_of(data::Vector{UInt8}) = data
bytes_of(text::AbstractString) = Vector{UInt8}(codeunits(text))

# Writes a tar with these members (name => contents).
function write_tar(path, members)
    blocks = [_tar_member(name, bytes_of(data)) for (name, data) in members]
    write(path, reduce(vcat, blocks; init=UInt8[]), zeros(UInt8, 1024))
    return path
end

# Writes a ZIP file with Python's zipfile.
function write_zip(path, members)
    script = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n" *
             "    for name, data in zip(sys.argv[2::2], sys.argv[3::2]): z.writestr(name, data)"
    words = reduce(vcat, [[name, data] for (name, data) in members]; init=String[])
    run(`python3 -c $script $path $words`)
    return path
end

# The bytes of an .npy file; `array` has Julia's order of dimensions, the file that of C.
function npy(array::Array{T}, descr) where {T}
    shape = join(reverse(size(array)), ", ") * (ndims(array) == 1 ? "," : "")
    header = "{'descr': '$descr', 'fortran_order': False, 'shape': ($shape), }"
    header = rpad(header, 128 - 10 - 1) * "\n"
    io = IOBuffer()
    write(io, "\x93NUMPY", UInt8(1), UInt8(0), UInt16(length(header)), header)
    write(io, array)
    return take!(io)
end

# The files that the examples of the docstrings read.
function write_example_files()
    words = ["one", "two", "three", "four", "five", "six"]
    for (shard, numbers, letter) in (("000", 1:3, 'a'), ("001", 4:6, 'b'))
        members = Pair{String,String}[]
        for n in numbers
            push!(members, "$letter/000$n.cls" => "$n", "$letter/000$n.txt" => words[n])
        end
        write_tar("train-$shard.tar", members)
    end
    write_zip("images.zip", ["a.txt" => "first", "b.txt" => "second"])
    return
end

# Calls f in a folder with these files. (Not cd(f, folder), which Julia 1.5 compiles: what f throws
# could not pass through it.)
function with_files(f)
    before = pwd()
    folder = mktempdir()
    try
        cd(folder)
        write_example_files()
        return f()
    finally
        cd(before)
        rm(folder; recursive=true)
    end
end

function write_arrays(path, arrays, descr)
    write_tar(path, ["$n.npy" => npy(array, descr) for (n, array) in enumerate(arrays)])
end

# The ShardFeedError that f throws; nothing when it throws none.
shf_error(f) =
    try
        f()
        nothing
    catch error
        error isa ShardFeedError ? error : rethrow()
    end

stream_keys(stream) = [sample.key for sample in stream]

# What a call that fails says.
function refusal(call)
    try
        call()
    catch error
        return sprint(showerror, error)
    end
    return ""
end
