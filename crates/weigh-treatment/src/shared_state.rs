//! Values that the treatments of one kind share in an experiment.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// One value of each type that a kind of treatment keeps here.
#[derive(Default)]
pub struct SharedState(RefCell<HashMap<TypeId, Rc<dyn Any>>>);

impl SharedState {
    /// The value of this type, the same for all that ask.
    pub fn of<T: Any + Default>(&self) -> Rc<T> {
        let mut values = self.0.borrow_mut();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        Rc::clone(value).downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn who_asks_for_a_type_shares_its_value() {
        let commons = SharedState::default();
        commons.of::<Cell<u8>>().set(7);
        assert_eq!((commons.of::<Cell<u8>>().get(), commons.of::<Cell<u16>>().get()), (7, 0));
    }
}
