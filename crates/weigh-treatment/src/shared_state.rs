//! Values that the treatments of one kind share in an experiment.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
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

/// Turns of the arms at something that exists once. Each kind wraps them in a type of its own, to share them
/// with no other kind.
///
/// Only the baseline and a treated arm can both have a say in a sample.

#[derive(Default)]
pub struct Turns {
    arms: Cell<usize>,
    holder: Cell<Option<usize>>,
}

impl Turns {
    /// Returns the number of an arm that takes part.
    pub fn enlist(&self) -> usize {
        self.arms.replace(self.arms.get() + 1)
    }

    pub fn take(&self, arm: usize) {
        self.holder.set(Some(arm));
    }

    /// Ends the turn of this arm; `false` if it has none.
    pub fn end(&self, arm: usize) -> bool {
        let is_its = self.holder.get() == Some(arm);
        if is_its {
            self.holder.set(None);
        }
        is_its
    }

    pub fn is_free(&self) -> bool {
        self.holder.get().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_type_shares_its_value() {
        let commons = SharedState::default();
        commons.of::<Cell<u8>>().set(7);
        assert_eq!((commons.of::<Cell<u8>>().get(), commons.of::<Cell<u16>>().get()), (7, 0));
    }
}
