# Memory that Julia's garbage collector does not see.

# The bytes of the library that kept samples and arrays over batches hold now. When they are many,
# whoever fetches more collects garbage first.
const _held = Threads.Atomic{Int}(0)
const _ENOUGH = 256 << 20
const _collect_above = Threads.Atomic{Int}(_ENOUGH)

function collect_garbage()
    _held[] <= _collect_above[] && return
    GC.gc(false)
    _held[] > _collect_above[] && GC.gc(true)
    # What is still there is wanted: look again when it has doubled.
    _collect_above[] = max(_ENOUGH, 2 * _held[])
    return
end
