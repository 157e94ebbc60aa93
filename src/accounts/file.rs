//! Accounts in an embedded database file.
//!
//! Whatever was written is on the disk when the call returns, and survives the end of the process
//! at any moment. A new file is made under another name and gets its own when it is whole: so a
//! file that is not whole was damaged, and is refused rather than begun anew.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::error::StoreError;
use super::hash::is_hash;
use super::is_user;
use super::store::Index;

/// User name to PHC string, both as bytes: so a text that is none is found here.
const ACCOUNTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("accounts");

/// What a file is called until it is whole.
const UNFINISHED: &str = ".new";
/// Accounts are read once; what remains are the few pages that a new one changes.
const CACHE_BYTES: usize = 1024 * 1024;

/// A file of accounts, held by this process alone.
pub(super) struct AccountsFile {
    path: PathBuf,
    /// None after a failure, when it has to be opened anew.
    database: Option<Database>,
}

impl AccountsFile {
    /// Opens the file at `path`, or makes it, readable to its owner only. Also returns what is
    /// in it.
    pub(super) fn open(path: &Path) -> Result<(Self, Index), StoreError> {
        let database = match is_there(path)? {
            true => open(path)?,
            false => create(path)?,
        };
        let index = read(&database, path)?;
        let file = Self {
            path: path.to_owned(),
            database: Some(database),
        };
        Ok((file, index))
    }

    /// Writes an account. It is on the disk when this returns; after an error it may be or not.
    /// The next call then opens the file again, in which all that is `known` must be.
    pub(super) fn insert(
        &mut self,
        known: &Index,
        user: &str,
        phc: &str,
    ) -> Result<(), StoreError> {
        // While it is away even a panic leaves none behind that failed.
        let database = match self.database.take() {
            Some(database) => database,
            None => self.open_again(known)?,
        };
        commit(&database, user, phc).map_err(|source| StoreError::database(&self.path, source))?;
        self.database = Some(database);
        Ok(())
    }

    fn open_again(&self, known: &Index) -> Result<Database, StoreError> {
        let database = open(&self.path)?;
        let index = read(&database, &self.path)?;
        match known.keys().all(|user| index.contains_key(user)) {
            true => Ok(database),
            false => Err(StoreError::damaged(&self.path, "accounts are missing")),
        }
    }
}

/// Whether there is a file with something in it.
fn is_there(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        // An empty file was asked for by whoever made it, and is no database yet.
        Ok(found) if found.is_file() => Ok(found.len() > 0),
        Ok(_) => Err(StoreError::NotAFile {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io(path, error)),
    }
}

/// Every page is checked when it is opened: what was damaged is found now, not when it is missed.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_check_integrity_on_open(true);
    builder
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let opened = builder().open(path);
    opened.map_err(|source| StoreError::database(path, source.into()))
}

fn create(path: &Path) -> Result<Database, StoreError> {
    let unfinished = unfinished(path);
    let file = new_file(&unfinished).map_err(|source| StoreError::io(&unfinished, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Locked {
                path: path.to_owned(),
                source: TryLockError::WouldBlock.into(),
            });
        }
        Err(TryLockError::Error(source)) => return Err(StoreError::io(path, source)),
    }
    // Somebody else may have been faster; then what is locked here may be that very file.
    if is_there(path)? {
        drop(file);
        return open(path);
    }
    let made = make(file, &unfinished, path);
    if made.is_err() {
        // Nothing in it is worth keeping; if it cannot be removed, the next start empties it.
        let _ = fs::remove_file(&unfinished);
    }
    made
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(UNFINISHED);
    name.into()
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a database of `file` and gives it its name.
fn make(file: File, unfinished: &Path, path: &Path) -> Result<Database, StoreError> {
    let failed = |source| StoreError::io(path, source);
    // What an interrupted start left. From here on the database has a lock of its own; whoever
    // gets in between finds the file empty, like this.
    file.set_len(0).map_err(failed)?;
    file.unlock().map_err(failed)?;
    let database = make_database(file).map_err(|source| StoreError::database(path, source))?;
    fs::rename(unfinished, path).map_err(failed)?;
    sync_folder(path).map_err(failed)?;
    Ok(database)
}

fn make_database(file: File) -> Result<Database, redb::Error> {
    let database = builder().create_with_backend(FileBackend::new(file)?)?;
    let transaction = database.begin_write()?;
    transaction.open_table(ACCOUNTS)?;
    transaction.commit()?;
    Ok(database)
}

/// The new name, too, is to survive a power cut.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match cfg!(unix) {
        true => File::open(folder.unwrap_or(Path::new(".")))?.sync_all(),
        false => Ok(()),
    }
}

fn commit(database: &Database, user: &str, phc: &str) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    // Strangers choose the names: what is written must not pass for a finished commit if only
    // some of it reached the disk.
    transaction.set_two_phase_commit(true);
    let mut accounts = transaction.open_table(ACCOUNTS)?;
    accounts.insert(user.as_bytes(), phc.as_bytes())?;
    drop(accounts);
    Ok(transaction.commit()?)
}

fn read(database: &Database, path: &Path) -> Result<Index, StoreError> {
    read_all(database).map_err(|source| StoreError::database(path, source))
}

fn read_all(database: &Database) -> Result<Index, redb::Error> {
    let transaction = database.begin_read()?;
    let accounts = transaction.open_table(ACCOUNTS)?;
    let mut index = Index::new();
    for row in accounts.iter()? {
        let (user, phc) = row?;
        let (user, phc) = account(user.value(), phc.value())
            .ok_or_else(|| redb::Error::Corrupted("a row is no account".to_owned()))?;
        index.insert(user.into(), phc.into());
    }
    Ok(index)
}

fn account<'a>(user: &'a [u8], phc: &'a [u8]) -> Option<(&'a str, &'a str)> {
    let user = str::from_utf8(user).ok().filter(|user| is_user(user))?;
    let phc = str::from_utf8(phc).ok().filter(|phc| is_hash(phc))?;
    Some((user, phc))
}
