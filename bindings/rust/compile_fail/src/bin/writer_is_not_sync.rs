// E0277
use shardfeed::Writer;

fn main() -> shardfeed::Result<()> {
    let writer = Writer::open("a.tar")?;
    std::thread::scope(|scope| {
        scope.spawn(|| writer.shards());
    });
    Ok(())
}
