//! Batches and their columns.

use std::marker::PhantomData;
use std::mem::{align_of, size_of, MaybeUninit};
use std::ptr::NonNull;
use std::slice;

use super::{checked, lent, sys, Options, Sample, NO_BYTES};
use crate::batch::Element;
use crate::error::Result;

/// A shf_batch, of which this is the only reference.
pub(crate) struct Batch {
    pointer: NonNull<sys::shf_batch>,
}

// SAFETY: "the numbers of a batch are its owner's to write to", which takes a `&mut Batch` here;
// unref from any thread.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

impl Batch {
    /// # Safety
    /// The caller has the only reference to `pointer`, which becomes that of the result.
    pub(super) unsafe fn owning(pointer: NonNull<sys::shf_batch>) -> Batch {
        Batch { pointer }
    }

    pub(crate) fn make(samples: &[&Sample], options: &Options) -> Result<Batch> {
        let samples: Vec<_> = samples.iter().map(|sample| sample.pointer()).collect();
        let mut out = std::ptr::null_mut();
        // SAFETY: live samples; the options live until the call returns.
        let result = checked(|error| unsafe {
            let (list, count) = (samples.as_ptr(), samples.len());
            sys::shf_batch_make(&mut out, list, count, options.pointer(), error)
        });
        // SAFETY: the reference is the caller's.
        let batch = NonNull::new(out).map(|batch| unsafe { Batch::owning(batch) });
        options.resume_panic();
        result?;
        Ok(batch.expect("a batch on success"))
    }

    pub(crate) fn size(&self) -> usize {
        // SAFETY: a live batch.
        unsafe { sys::shf_batch_row_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn count(&self) -> usize {
        // SAFETY: a live batch.
        unsafe { sys::shf_batch_column_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let mut index = 0;
        // SAFETY: a live batch; the name has its length.
        let code = unsafe {
            let (batch, text) = (self.pointer.as_ptr(), name.as_ptr().cast());
            sys::shf_batch_find(batch, text, name.len(), &mut index)
        };
        (code == sys::SHF_OK).then_some(index)
    }

    pub(crate) fn key(&self, row: usize) -> Option<&[u8]> {
        let mut out = NO_BYTES;
        // SAFETY: a live batch; any row. The key lives as long as the batch.
        unsafe {
            let code = sys::shf_batch_key(self.pointer.as_ptr(), row, &mut out);
            (code == sys::SHF_OK).then(|| lent(out))
        }
    }

    pub(crate) fn column(&self, index: usize) -> Option<Column<'_>> {
        let mut name = NO_BYTES;
        let mut array = MaybeUninit::uninit();
        // SAFETY: a live batch; any index. A call that succeeds has written both, and what they
        // point to lives as long as the batch.
        unsafe {
            let batch = self.pointer.as_ptr();
            let code = sys::shf_batch_column(batch, index, &mut name, array.as_mut_ptr());
            if code != sys::SHF_OK {
                return None;
            }
            Some(Column::lent(lent(name), array.assume_init(), self.size()))
        }
    }

    pub(crate) fn values_mut<T: Element>(&mut self, index: usize) -> Option<&mut [T]> {
        let column = self.column(index)?;
        let (data, count) = (column.array.data, column.values::<T>()?.len());
        if count == 0 {
            return Some(&mut []);
        }
        // SAFETY: values() has looked at type, size and alignment. The memory is this batch's
        // alone, and borrowed as long as the batch is.
        Some(unsafe { slice::from_raw_parts_mut(data.cast(), count) })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and released once.
        unsafe { sys::shf_batch_unref(self.pointer.as_ptr()) }
    }
}

/// A column whose memory a batch keeps for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) rows: usize,
    array: sys::shf_array,
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: it is read only, as long as the batch is borrowed.
unsafe impl Send for Column<'_> {}
// SAFETY: as above.
unsafe impl Sync for Column<'_> {}

impl<'a> Column<'a> {
    /// # Safety
    /// `array` is one of the library over `rows` rows, whose memory lives and does not change for
    /// `'a`.
    unsafe fn lent(name: &'a [u8], array: sys::shf_array, rows: usize) -> Column<'a> {
        Column { name, rows, array, owner: PhantomData }
    }

    pub(crate) fn kind(&self) -> i32 {
        self.array.kind
    }

    pub(crate) fn dtype(&self) -> i32 {
        self.array.dtype
    }

    pub(crate) fn shape(&self) -> &[i64] {
        let count = usize::try_from(self.array.ndim).unwrap_or(0);
        self.array.shape.get(..count).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        // SAFETY: `size` bytes that live for 'a.
        unsafe { lent(sys::shf_bytes { data: self.array.data.cast(), size: self.array.size }) }
    }

    /// The numbers, if they are of this type.
    pub(crate) fn values<T: Element>(&self) -> Option<&'a [T]> {
        if !T::fits(self.array.dtype) {
            return None;
        }
        let count = self.array.size / size_of::<T>();
        if count == 0 {
            return Some(&[]);
        }
        debug_assert_eq!(self.array.data as usize % align_of::<T>(), 0);
        // SAFETY: `size` bytes that live for 'a, 64-byte aligned, with numbers of this type, of
        // which every bit pattern is one: Element is sealed.
        Some(unsafe { slice::from_raw_parts(self.array.data.cast(), count) })
    }

    /// Where the rows of a ragged column start, and the last one stops.
    pub(crate) fn offsets(&self) -> Option<&'a [i64]> {
        // SAFETY: rows + 1 numbers, unless it is NULL.
        unsafe { Self::numbers(self.array.offsets, self.rows + 1) }
    }

    pub(crate) fn row_ndim(&self) -> usize {
        usize::try_from(self.array.row_ndim).unwrap_or(0)
    }

    /// The shapes of all rows, one after another; nothing when all have the same.
    pub(crate) fn shapes(&self) -> Option<&'a [i64]> {
        // SAFETY: row_ndim numbers for each row, unless it is NULL.
        unsafe { Self::numbers(self.array.shapes, self.rows * self.row_ndim()) }
    }

    /// # Safety
    /// `numbers` is NULL or has `count` of them that live for 'a.
    unsafe fn numbers(numbers: *const i64, count: usize) -> Option<&'a [i64]> {
        if numbers.is_null() {
            return None;
        }
        // SAFETY: as the caller promises.
        Some(unsafe { slice::from_raw_parts(numbers, count) })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr;

    use super::*;

    // These run in Miri too: the memory is Rust's.

    fn array<T>(values: &[T], dtype: i32, shape: &[i64]) -> sys::shf_array {
        let mut whole = [0; 8];
        whole[..shape.len()].copy_from_slice(shape);
        sys::shf_array {
            data: values.as_ptr() as *mut c_void,
            size: std::mem::size_of_val(values),
            offsets: ptr::null(),
            shapes: ptr::null(),
            shape: whole,
            ndim: shape.len() as i32,
            row_ndim: shape.len() as i32 - 1,
            dtype,
            kind: sys::SHF_COLUMN_ARRAY,
        }
    }

    #[test]
    fn an_even_column() {
        let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let array = array(&values, sys::SHF_DTYPE_FLOAT32, &[2, 3]);
        // SAFETY: over `values`, two rows.
        let column = unsafe { Column::lent(b"x", array, 2) };
        assert_eq!(column.values::<f32>(), Some(&values[..]));
        assert_eq!(column.values::<i32>(), None);
        assert_eq!(column.shape(), [2, 3]);
        assert_eq!(column.bytes().len(), 24);
        assert!(column.offsets().is_none() && column.shapes().is_none());
    }

    #[test]
    fn a_ragged_column() {
        let (values, offsets, shapes) = ([7i64, 8, 9], [0, 1, 3], [1, 1, 1, 2]);
        let mut array = array(&values, sys::SHF_DTYPE_INT64, &[3]);
        (array.offsets, array.shapes, array.row_ndim) = (offsets.as_ptr(), shapes.as_ptr(), 2);
        // SAFETY: over the three above, two rows.
        let column = unsafe { Column::lent(b"x", array, 2) };
        assert_eq!(column.offsets(), Some(&offsets[..]));
        assert_eq!((column.shapes(), column.row_ndim()), (Some(&shapes[..]), 2));
    }

    #[test]
    fn an_empty_column_has_no_memory() {
        let mut array = array::<u8>(&[], sys::SHF_DTYPE_UINT8, &[0]);
        array.data = ptr::null_mut();
        // SAFETY: nothing, no rows.
        let column = unsafe { Column::lent(b"x", array, 0) };
        assert_eq!(column.values::<u8>(), Some(&[][..]));
        assert!(column.bytes().is_empty());
    }
}
