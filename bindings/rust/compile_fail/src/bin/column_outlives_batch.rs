// E0505
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let batch = stream.next_batch()?.unwrap();
    let values = batch.column("cls").unwrap().values::<i64>();
    drop(batch);
    println!("{values:?}");
    Ok(())
}
