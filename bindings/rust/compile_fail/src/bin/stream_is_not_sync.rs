// E0277
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let stream = Stream::open(["a.tar"])?;
    std::thread::scope(|scope| {
        scope.spawn(|| stream.counter("samples"));
    });
    Ok(())
}
