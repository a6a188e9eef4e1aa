//! Batches: decoded columns.

use std::fmt;

use crate::name::Name;
use crate::native::{self, sys};

/// The decoded fields of some samples, one column for each field, and two for keys and URLs.
///
/// What becomes of which field the option `decode` says. The numbers are in memory of the library,
/// 64-byte aligned, that is used again once the batch is dropped.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// let decode = "jpg:image/rgb8/chw, cls:int, txt";
/// let mut stream = shardfeed::Stream::builder().batch(4).decode(decode).open(["train-{000..002}.tar"])?;
/// let batch = stream.next_batch()?.unwrap();
/// let images = batch.column("jpg").unwrap();
/// assert_eq!(images.shape(), [4, 3, 8, 8]);
/// let pixels: &[u8] = images.values().unwrap();
/// let labels: &[i64] = batch.column("cls").unwrap().values().unwrap();
/// let text = batch.column("txt").unwrap().row_str(0).unwrap();
/// # assert_eq!((pixels.len(), labels.len(), text), (4 * 3 * 64, 4, "text 0"));
/// # Ok::<(), shardfeed::Error>(())
/// ```
pub struct Batch(pub(crate) native::Batch);

impl Batch {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column of this name; that of a field has the field's.
    pub fn column(&self, name: impl AsRef<[u8]>) -> Option<Column<'_>> {
        self.0.column(self.0.find(name.as_ref())?).map(Column::new)
    }

    /// All columns. The last two are the keys, `__key__`, and the URLs of the shards, `__url__`.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        (0..self.0.count()).map(|index| {
            let column = self.0.column(index).expect("there are as many columns");
            Column::new(column)
        })
    }

    /// The key of a row.
    pub fn key(&self, row: usize) -> Option<Name<'_>> {
        self.0.key(row).map(Name::new)
    }

    /// The numbers of a column, to be written to. `None` when there is no column of this name, or
    /// its numbers have another type.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let mut stream = shardfeed::Stream::builder().batch(3).decode("cls:int").open(["train-000.tar"])?;
    /// let mut batch = stream.next_batch()?.unwrap();
    /// for label in batch.values_mut::<i64>("cls").unwrap() {
    ///     *label += 1;
    /// }
    /// assert_eq!(batch.column("cls").unwrap().values(), Some(&[1i64, 2, 3][..]));
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    pub fn values_mut<T: Element>(&mut self, name: impl AsRef<[u8]>) -> Option<&mut [T]> {
        let index = self.0.find(name.as_ref())?;
        self.0.values_mut(index)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.columns()).finish()
    }
}

/// What a column of a [`Batch`] has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Numbers.
    Array,
    /// Bytes of any length, as are the next three.
    Bytes,
    /// UTF-8.
    Text,
    /// JSON.
    Json,
    /// MessagePack.
    MessagePack,
}

/// The type of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum Dtype {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Bfloat16,
    /// Of a newer library: its number.
    Other(i32),
}

impl Dtype {
    /// The types in the order of their codes.
    const ALL: [Dtype; 15] = [
        Dtype::Bool,
        Dtype::Int8,
        Dtype::Int16,
        Dtype::Int32,
        Dtype::Int64,
        Dtype::Uint8,
        Dtype::Uint16,
        Dtype::Uint32,
        Dtype::Uint64,
        Dtype::Float16,
        Dtype::Float32,
        Dtype::Float64,
        Dtype::Complex64,
        Dtype::Complex128,
        Dtype::Bfloat16,
    ];

    fn from_code(code: i32) -> Dtype {
        let known = usize::try_from(code).ok().and_then(|place| Self::ALL.get(place));
        *known.unwrap_or(&Dtype::Other(code))
    }

    /// The number of the type, as in the C header.
    pub fn code(self) -> i32 {
        match self {
            Dtype::Other(code) => code,
            known => Self::ALL.iter().position(|&dtype| dtype == known).map_or(-1, |n| n as i32),
        }
    }
}

mod sealed {
    /// Which numbers of the library a Rust type is. Only types of which every bit pattern is a
    /// value, and whose size is that of the number.
    pub trait Number {
        fn fits(dtype: i32) -> bool;
    }
}

/// A type of numbers in a column: integers and floats of their names, `u8` for `bool` too,
/// [`F16`], [`BF16`], and `[f32; 2]` and `[f64; 2]` for complex numbers.
pub trait Element: Copy + sealed::Number + 'static {}

macro_rules! elements {
    ($($type:ty: $($code:ident)|+;)*) => {
        $(
            impl sealed::Number for $type {
                fn fits(dtype: i32) -> bool {
                    matches!(dtype, $(sys::$code)|+)
                }
            }
            impl Element for $type {}
        )*
    };
}

elements! {
    i8: SHF_DTYPE_INT8;
    i16: SHF_DTYPE_INT16;
    i32: SHF_DTYPE_INT32;
    i64: SHF_DTYPE_INT64;
    u8: SHF_DTYPE_UINT8 | SHF_DTYPE_BOOL;
    u16: SHF_DTYPE_UINT16;
    u32: SHF_DTYPE_UINT32;
    u64: SHF_DTYPE_UINT64;
    F16: SHF_DTYPE_FLOAT16;
    f32: SHF_DTYPE_FLOAT32;
    f64: SHF_DTYPE_FLOAT64;
    [f32; 2]: SHF_DTYPE_COMPLEX64;
    [f64; 2]: SHF_DTYPE_COMPLEX128;
    BF16: SHF_DTYPE_BFLOAT16;
}

/// The bits of a 16-bit float (IEEE 754 binary16), for which stable Rust has no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16, the upper half of a 32-bit float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// One column of a [`Batch`]: numbers in C order without gaps, in one of three layouts.
///
/// * even: all rows have the same shape; [`shape`](Self::shape) starts with the number of rows.
/// * ragged: rows of unequal shape, one after another; [`row`](Self::row) and
///   [`row_shape`](Self::row_shape). Bytes and texts are ragged.
/// * padded: even, filled up with zeros; [`row_shape`](Self::row_shape) is that of before.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    native: native::Column<'a>,
    shape: [usize; 8],
}

impl<'a> Column<'a> {
    fn new(native: native::Column<'a>) -> Column<'a> {
        let mut shape = [0; 8];
        for (mine, &theirs) in shape.iter_mut().zip(native.shape()) {
            *mine = size(theirs);
        }
        Column { native, shape }
    }

    /// The name: that of the field.
    pub fn name(&self) -> Name<'a> {
        Name::new(self.native.name)
    }

    /// What is in it.
    pub fn kind(&self) -> ColumnKind {
        match self.native.kind() {
            sys::SHF_COLUMN_ARRAY => ColumnKind::Array,
            sys::SHF_COLUMN_TEXT => ColumnKind::Text,
            sys::SHF_COLUMN_JSON => ColumnKind::Json,
            sys::SHF_COLUMN_MSGPACK => ColumnKind::MessagePack,
            _ => ColumnKind::Bytes,
        }
    }

    /// The type of its numbers.
    pub fn dtype(&self) -> Dtype {
        Dtype::from_code(self.native.dtype())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.native.rows
    }

    /// The shape of all numbers: the first is the number of rows, or of a ragged column the only
    /// one, the number of elements of all rows.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.native.shape().len()]
    }

    /// All numbers, if they are of this type.
    pub fn values<T: Element>(&self) -> Option<&'a [T]> {
        self.native.values()
    }

    /// The memory of all numbers, of any type.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.native.bytes()
    }

    /// Of a ragged column the number of the element where each row starts, and the last one stops.
    pub fn offsets(&self) -> Option<&'a [i64]> {
        self.native.offsets()
    }

    /// The number of dimensions of a row.
    pub fn row_ndim(&self) -> usize {
        self.native.row_ndim()
    }

    /// The shapes of all rows, one after another; `None` when all have the same, and of numbers and
    /// bytes. [`row_shape`](Self::row_shape) gives that of one.
    pub fn row_shapes(&self) -> Option<&'a [i64]> {
        self.native.shapes()
    }

    /// The numbers of one row, if they are of this type.
    pub fn row<T: Element>(&self, row: usize) -> Option<&'a [T]> {
        let values = self.values()?;
        if row >= self.rows() {
            return None;
        }
        let (start, stop) = match self.offsets() {
            Some(offsets) => (size(offsets[row]), size(offsets[row + 1])),
            None => {
                let each = values.len() / self.rows();
                (row * each, (row + 1) * each)
            }
        };
        values.get(start..stop)
    }

    /// The shape of one row; of a padded column as it was before zeros were added.
    pub fn row_shape(&self, row: usize) -> Option<Vec<usize>> {
        if row >= self.rows() {
            return None;
        }
        if let Some(shapes) = self.row_shapes() {
            let shape = &shapes[row * self.row_ndim()..(row + 1) * self.row_ndim()];
            return Some(shape.iter().map(|&length| size(length)).collect());
        }
        match self.offsets() {
            Some(offsets) => Some(vec![size(offsets[row + 1] - offsets[row])]),
            None => self.shape().get(1..).map(<[usize]>::to_vec),
        }
    }

    /// The bytes of one row of a column of bytes, text, JSON or MessagePack.
    pub fn row_bytes(&self, row: usize) -> Option<&'a [u8]> {
        match self.kind() {
            ColumnKind::Array => None,
            _ => self.row(row),
        }
    }

    /// One row of a column of bytes, text or JSON, if it is UTF-8.
    pub fn row_str(&self, row: usize) -> Option<&'a str> {
        std::str::from_utf8(self.row_bytes(row)?).ok()
    }

    /// The numbers as an array, if they are of this type and the column is even or padded.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let builder = shardfeed::Stream::builder().batch(4).decode("jpg:image/rgb8");
    /// let mut stream = builder.open(["train-{000..002}.tar"])?;
    /// let batch = stream.next_batch()?.unwrap();
    /// let images = batch.column("jpg").unwrap().array::<u8>().unwrap();
    /// assert_eq!(images.shape(), [4, 8, 8, 3]);
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    #[cfg(feature = "ndarray")]
    pub fn array<T: Element>(&self) -> Option<ndarray::ArrayViewD<'a, T>> {
        match self.offsets() {
            Some(_) => None,
            None => ndarray::ArrayViewD::from_shape(self.shape(), self.values()?).ok(),
        }
    }

    /// The numbers of one row as an array, if they are of this type; of a padded column with its
    /// zeros.
    #[cfg(feature = "ndarray")]
    pub fn row_array<T: Element>(&self, row: usize) -> Option<ndarray::ArrayViewD<'a, T>> {
        let shape = match self.offsets() {
            Some(_) => self.row_shape(row)?,
            None => self.shape().get(1..)?.to_vec(),
        };
        ndarray::ArrayViewD::from_shape(shape, self.row(row)?).ok()
    }
}

impl fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .finish()
    }
}

/// A size of the library, which is never negative.
fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_a_type() {
        for (code, dtype) in (-1..16).map(|code| (code, Dtype::from_code(code))) {
            assert_eq!(dtype.code(), code);
            assert_eq!(matches!(dtype, Dtype::Other(_)), !(0..15).contains(&code));
        }
        assert_eq!(Dtype::from_code(sys::SHF_DTYPE_UINT8), Dtype::Uint8);
        assert_eq!(Dtype::from_code(sys::SHF_DTYPE_BFLOAT16), Dtype::Bfloat16);
    }
}
