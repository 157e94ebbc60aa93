//! Why the accounts' file cannot be used.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The error below, of the system or of the database.
type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a file of accounts cannot be opened, or an account not be written.
#[derive(Debug)]
pub enum StoreError {
    /// There is something else at this path: a folder, a device.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Another server has the file.
    Locked {
        /// The file.
        path: PathBuf,
        /// What the database said.
        source: Source,
    },
    /// It is no file of accounts, or it was damaged. It is left as it is.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Source,
    },
    /// The disk is full, or a quota or the limit of a file's size is reached.
    Full {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Source,
    },
    /// The system refuses for another reason, a missing folder or permission for one.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Source,
    },
}

impl StoreError {
    pub(super) fn damaged(path: &Path, source: impl Into<Source>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            source: source.into(),
        }
    }

    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let kind = source.kind();
        let source = Source::from(source);
        match kind {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path, source },
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Self::Damaged { path, source }
            }
            _ => Self::Io { path, source },
        }
    }

    pub(super) fn database(path: &Path, source: redb::Error) -> Self {
        let path_owned = path.to_owned();
        match source {
            redb::Error::Io(source) => Self::io(path, source),
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => Self::Locked {
                path: path_owned,
                source: source.into(),
            },
            redb::Error::PreviousIo
            | redb::Error::Backend(_)
            | redb::Error::Unsupported
            | redb::Error::DatabaseClosed => Self::Io {
                path: path_owned,
                source: source.into(),
            },
            // Whatever else it may say is about what it found in the file.
            _ => Self::damaged(path, source),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::NotAFile { path }
            | Self::Locked { path, .. }
            | Self::Damaged { path, .. }
            | Self::Full { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accounts file {:?}: ", self.path())?;
        f.write_str(match self {
            Self::NotAFile { .. } => "this is not a file",
            Self::Locked { .. } => "another server is using it",
            Self::Damaged { .. } => "it is damaged, or no accounts file",
            Self::Full { .. } => "there is no space left",
            Self::Io { .. } => "it cannot be used",
        })?;
        match self.source() {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotAFile { .. } => None,
            Self::Locked { source, .. }
            | Self::Damaged { source, .. }
            | Self::Full { source, .. }
            | Self::Io { source, .. } => Some(&**source),
        }
    }
}
