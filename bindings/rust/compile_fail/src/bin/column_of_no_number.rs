// E0277
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let batch = stream.next_batch()?.unwrap();
    println!("{:?}", batch.column("flag").unwrap().values::<bool>());
    Ok(())
}
