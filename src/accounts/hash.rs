//! Passwords as they are kept: Argon2id in PHC strings.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Block, Params, Version};

/// Bytes of a salt.
pub(super) const SALT_LEN: usize = 16;
/// Bytes of a hash.
const HASH_LEN: usize = 32;

/// What a hash may cost that is read from a file, so that no file makes a worker's memory or time
/// grow without a bound: 64 MiB, and as many passes and lanes.
const MEMORY_KIB_MAX: u32 = 64 * 1024;
const PASSES_MAX: u32 = 8;
const LANES_MAX: u32 = 4;

/// What a new hash costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
}

impl Cost {
    /// What OWASP recommends: 19 MiB, two passes, one lane.
    pub(super) const OWASP: Self = Self {
        memory_kib: 19 * 1024,
        passes: 2,
    };
}

/// A hash could not be computed or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashError {
    /// The system has no memory for it.
    NoMemory,
    /// The kept hash is none of ours.
    BadHash,
}

/// Computes hashes, in memory that it keeps for the next one.
pub(super) struct Hasher {
    params: Params,
    /// Looks like everybody's, is nobody's.
    nobody: String,
    memory: Vec<Block>,
    runs: u64,
}

impl Hasher {
    /// New hashes will cost `cost`. Takes no memory before the first.
    ///
    /// # Errors
    /// [`HashError::BadHash`] if Argon2 allows no such cost.
    pub(super) fn new(cost: Cost) -> Result<Self, HashError> {
        let params = Params::new(cost.memory_kib, cost.passes, 1, Some(HASH_LEN));
        let params = params.map_err(|_| HashError::BadHash)?;
        let nobody = phc(&params, &[0; SALT_LEN], &[0; HASH_LEN])?;
        Ok(Self {
            params,
            nobody,
            memory: Vec::new(),
            runs: 0,
        })
    }

    /// How many hashes were computed.
    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// The PHC string of `password`.
    pub(super) fn hash(
        &mut self,
        password: &[u8],
        salt: &[u8; SALT_LEN],
    ) -> Result<String, HashError> {
        let params = self.params.clone();
        let mut hash = [0; HASH_LEN];
        self.run(&params, Version::V0x13, password, salt, &mut hash)?;
        phc(&params, salt, &hash)
    }

    /// Whether `password` is the one kept as `phc`. Without one, that of an unknown user, it is
    /// not, which takes as long to find out.
    pub(super) fn verify(&mut self, password: &[u8], phc: Option<&str>) -> Result<bool, HashError> {
        let kept = Kept::read(phc.unwrap_or(&self.nobody))?;
        let mut hash = [0; Output::MAX_LENGTH];
        let hash = &mut hash[..kept.hash.len()];
        self.run(&kept.params, kept.version, password, &kept.salt, hash)?;
        // Compared in constant time.
        let is_same = Output::new(hash).is_ok_and(|hash| hash == kept.hash);
        Ok(is_same && phc.is_some())
    }

    fn run(
        &mut self,
        params: &Params,
        version: Version,
        password: &[u8],
        salt: &[u8],
        hash: &mut [u8],
    ) -> Result<(), HashError> {
        let more = params.block_count().saturating_sub(self.memory.len());
        let reserved = self.memory.try_reserve_exact(more);
        reserved.map_err(|_| HashError::NoMemory)?;
        self.memory
            .resize(self.memory.len() + more, Block::default());
        self.runs += 1;
        Argon2::new(Algorithm::Argon2id, version, params.clone())
            .hash_password_into_with_memory(password, salt, hash, &mut self.memory)
            .map_err(|_| HashError::BadHash)
    }
}

/// Whether `phc` is the hash of some password, and not too costly to compare with.
pub(super) fn is_hash(phc: &str) -> bool {
    Kept::read(phc).is_ok()
}

fn phc(params: &Params, salt: &[u8], hash: &[u8]) -> Result<String, HashError> {
    let phc = PasswordHash {
        algorithm: ARGON2ID_IDENT,
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(params).map_err(|_| HashError::BadHash)?,
        salt: Some(Salt::new(salt).map_err(|_| HashError::BadHash)?),
        hash: Some(Output::new(hash).map_err(|_| HashError::BadHash)?),
    };
    Ok(phc.to_string())
}

/// A PHC string, taken apart.
struct Kept {
    params: Params,
    version: Version,
    salt: Salt,
    hash: Output,
}

impl Kept {
    fn read(phc: &str) -> Result<Self, HashError> {
        let phc = PasswordHash::new(phc).map_err(|_| HashError::BadHash)?;
        let params = Params::try_from(&phc).map_err(|_| HashError::BadHash)?;
        let version = phc.version.and_then(|version| version.try_into().ok());
        let is_bearable = params.m_cost() <= MEMORY_KIB_MAX
            && params.t_cost() <= PASSES_MAX
            && params.p_cost() <= LANES_MAX;
        match (version, phc.salt, phc.hash) {
            (Some(version), Some(salt), Some(hash))
                if phc.algorithm == ARGON2ID_IDENT && is_bearable =>
            {
                Ok(Self {
                    params,
                    version,
                    salt,
                    hash,
                })
            }
            _ => Err(HashError::BadHash),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost {
        memory_kib: 8,
        passes: 1,
    };

    /// From the tests of the reference implementation: the password `password`, the salt
    /// `somesalt`.
    const REFERENCE: [&str; 3] = [
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    ];

    #[test]
    fn it_is_argon2id_as_the_reference_computes_it() {
        let mut hasher = Hasher::new(CHEAP).expect("a cost");
        for phc in REFERENCE {
            assert_eq!(hasher.verify(b"password", Some(phc)), Ok(true), "{phc}");
            assert_eq!(hasher.verify(b"passwort", Some(phc)), Ok(false), "{phc}");
        }
        assert_eq!(hasher.runs(), 6);
    }

    #[test]
    fn a_hash_is_right_for_its_password_and_salt_alone() {
        let mut hasher = Hasher::new(CHEAP).expect("a cost");
        let phc = hasher.hash(b"password", &[7; SALT_LEN]).expect("a hash");
        let other = hasher.hash(b"password", &[8; SALT_LEN]).expect("a hash");
        assert!(phc.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{phc}");
        assert_ne!(phc, other);
        assert!(is_hash(&phc));
        assert_eq!(hasher.verify(b"password", Some(&phc)), Ok(true));
        assert_eq!(hasher.verify(b"passwore", Some(&phc)), Ok(false));
        assert_eq!(hasher.verify(b"password", None), Ok(false));
    }

    #[test]
    fn memory_is_taken_once_and_grows_only_for_a_larger_hash() {
        let mut hasher = Hasher::new(CHEAP).expect("a cost");
        assert_eq!(hasher.memory.capacity(), 0);
        let phc = hasher.hash(b"password", &[7; SALT_LEN]).expect("a hash");
        let place = hasher.memory.as_ptr();
        for _ in 0..10 {
            assert_eq!(hasher.verify(b"password", Some(&phc)), Ok(true));
            assert_eq!((hasher.memory.as_ptr(), hasher.memory.len()), (place, 8));
        }
        assert_eq!(hasher.verify(b"password", Some(REFERENCE[1])), Ok(true));
        assert_eq!(hasher.memory.len(), 256);
        assert_eq!(hasher.verify(b"password", Some(&phc)), Ok(true));
        assert_eq!(hasher.memory.len(), 256);
    }

    #[test]
    fn what_is_no_hash_of_ours_or_too_costly_is_none() {
        for wrong in [
            "",
            "password",
            "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ",
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=65537,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=9,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=5$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$scrypt$ln=16,r=8,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        ] {
            assert!(!is_hash(wrong), "{wrong}");
        }
        assert!(REFERENCE.iter().all(|phc| is_hash(phc)));
    }
}
