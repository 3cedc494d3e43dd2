//! Schemas as another library might write them, correct or wrong.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use bowstring::ffi::FFI_ArrowSchema;

/// An independent definition of `ArrowSchema`.
#[repr(C)]
pub struct RawSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut RawSchema,
    pub dictionary: *mut RawSchema,
    pub release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    pub private_data: *mut c_void,
}

struct Private {
    children: Box<[*mut RawSchema]>,
    dictionary: *mut RawSchema,
}

unsafe extern "C" fn release(schema: *mut RawSchema) {
    // SAFETY: the interface asks for a valid struct.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: boxed in `new`, unboxed here, once.
    let private = unsafe { Box::from_raw(schema.private_data.cast::<Private>()) };
    for child in private.children.iter().copied().chain([private.dictionary]).filter(|c| !c.is_null()) {
        // SAFETY: as above.
        let mut child = unsafe { Box::from_raw(child) };
        if let Some(release) = child.release {
            // SAFETY: not released yet.
            unsafe { release(&mut *child) };
        }
    }
}

impl RawSchema {
    pub fn new(format: &'static CStr, children: Vec<RawSchema>) -> RawSchema {
        Self::dictionary(format, children, None)
    }

    pub fn dictionary(format: &'static CStr, children: Vec<RawSchema>, of: Option<RawSchema>) -> RawSchema {
        let boxed = |schema: RawSchema| Box::into_raw(Box::new(schema));
        let mut private = Box::new(Private {
            children: children.into_iter().map(boxed).collect(),
            dictionary: of.map_or(null_mut(), boxed),
        });
        RawSchema {
            format: format.as_ptr(),
            name: null(),
            metadata: null(),
            flags: 2,
            n_children: private.children.len() as i64,
            children: private.children.as_mut_ptr(),
            dictionary: private.dictionary,
            release: Some(release),
            private_data: Box::into_raw(private).cast(),
        }
    }

    /// The same schema, modified by `bend`.
    pub fn with(mut self, bend: impl FnOnce(&mut RawSchema)) -> RawSchema {
        bend(&mut self);
        self
    }

    /// Converts to the library's type.
    pub fn into_ours(self) -> FFI_ArrowSchema {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawSchema, FFI_ArrowSchema>(self) }
    }
}
