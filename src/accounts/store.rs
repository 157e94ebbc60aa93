//! Who has an account: user name to PHC string.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::error::StoreError;
use super::file::AccountsFile;

/// The accounts by user name, with the hashes of their passwords.
pub(super) type Index = HashMap<Box<str>, Box<str>>;

/// Where accounts are kept: in memory, or in a file too.
///
/// All of them are in memory, some 200 bytes each, so that logins go on while a disk is full or
/// hangs. The file is read when it is opened and afterwards only written.
pub struct Store {
    index: RwLock<Index>,
    /// Locked by whoever registers, one at a time, for as long as the disk takes. Only its holder
    /// locks the index for writing, and not while it waits for the disk: so logins wait for nobody.
    file: Mutex<Option<AccountsFile>>,
    is_file: bool,
}

/// What became of a new account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    /// It is there, and in the file if there is one.
    Inserted,
    /// The user has one already.
    Taken,
    /// There are too many.
    TooMany,
}

impl Store {
    /// Accounts that are forgotten with the store.
    pub fn in_memory() -> Self {
        Self {
            index: RwLock::default(),
            file: Mutex::new(None),
            is_file: false,
        }
    }

    /// Opens the accounts in the file at `path`, every page of which is checked, or makes a file
    /// if there is none or an empty one; its folder must exist. A new file is readable to its owner
    /// only. While it is made it is called `path` with `.new` behind.
    ///
    /// The file survives the end of the process at any moment with every account that was answered
    /// `Registered`.
    ///
    /// # Errors
    /// [`StoreError`] if there is something else at `path`, another server uses the file, it is
    /// damaged, its disk is full, or the system refuses. The file is left as it is then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (file, index) = AccountsFile::open(path.as_ref())?;
        Ok(Self {
            index: RwLock::new(index),
            file: Mutex::new(Some(file)),
            is_file: true,
        })
    }

    /// Whether the accounts are in a file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// How many accounts there are.
    pub fn len(&self) -> usize {
        self.index().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.index().is_empty()
    }

    /// The PHC string of `user`.
    pub(super) fn get(&self, user: &str) -> Option<Box<str>> {
        self.index().get(user).cloned()
    }

    /// Whether one more account is out of the question.
    pub(super) fn refusal(&self, user: &str, max: usize) -> Option<Insertion> {
        let index = self.index();
        if index.contains_key(user) {
            Some(Insertion::Taken)
        } else if index.len() >= max {
            Some(Insertion::TooMany)
        } else {
            None
        }
    }

    /// Adds an account unless the user has one or there are `max`. If there is a file, the account
    /// is on the disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written. The next call opens the file again and tries.
    pub(super) fn insert(
        &self,
        user: &str,
        phc: &str,
        max: usize,
    ) -> Result<Insertion, StoreError> {
        let mut file = self.file();
        if let Some(refusal) = self.refusal(user, max) {
            return Ok(refusal);
        }
        if let Some(file) = &mut *file {
            file.insert(&self.index(), user, phc)?;
        }
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.insert(user.into(), phc.into());
        Ok(Insertion::Inserted)
    }

    // Neither lock is held over anything that leaves half of something behind when it panics.

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn file(&self) -> MutexGuard<'_, Option<AccountsFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Store {
    /// Tells nothing of an account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("is_file", &self.is_file)
            .field("accounts", &self.len())
            .finish()
    }
}
