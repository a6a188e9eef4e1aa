// E0502
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let mut batch = stream.next_batch()?.unwrap();
    let column = batch.column("cls").unwrap();
    batch.values_mut::<i64>("cls").unwrap()[0] = 1;
    println!("{:?}", column.values::<i64>());
    Ok(())
}
