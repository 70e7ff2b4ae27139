//! Keys that sign anchors: Ed25519, in the files that openssl reads. The private part stays with
//! whoever takes the anchors; no server ever sees it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use serde_json::json;

use super::read::text_of;
use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;

/// A key's file has three lines; what is longer is something else.
const FILE_MAX: u64 = 16 * 1024;
const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";
/// What stands before the 32 bytes of a public key in a file (RFC 8410).
const PUBLIC_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0];

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a key: the private part in FILE, the public one in FILE.pub
    New { file: PathBuf },
    /// The id of a key, from its public part
    Id { file: PathBuf },
}

/// Signs; comes only from a file that nobody else can read.
#[derive(Debug)]
pub struct Signer(Ed25519KeyPair);

/// Checks what its private part signed.
#[derive(Debug)]
pub struct Verifier {
    pub id: String,
    raw: Vec<u8>,
}

pub fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::New { file } => make(global, &file),
        Command::Id { file } => {
            let id = Verifier::read(&file)?.id;
            match global.json {
                true => output::json(&json!({ "key": id }))?,
                false => output::line(format_args!("{id}"))?,
            }
            Ok(Outcome::Done)
        }
    }
}

fn make(global: &Global, file: &Path) -> anyhow::Result<Outcome> {
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    for path in [file, &public] {
        let name = path.display();
        anyhow::ensure!(!path.exists(), "`{name}` is there already: choose another name");
    }
    let pair = Ed25519KeyPair::generate().map_err(|_| anyhow!("no key could be made"))?;
    let broken = |_| anyhow!("the key cannot be written");
    let private_text = pem(PRIVATE, pair.to_pkcs8v1().map_err(broken)?.as_ref());
    let public_der = pair.public_key().as_der().map_err(broken)?;
    write(file, 0o600, &private_text)?;
    write(&public, 0o644, &pem(PUBLIC, public_der.as_ref()))?;
    let id = id(public_der.as_ref());
    if global.json {
        output::json(&json!({ "key": id, "private": file, "public": public }))?;
    } else {
        output::line(format_args!("{id}"))?;
        output::note(format_args!(
            "Sign with `chancery audit anchor --sign {}`, where the server's writers cannot read \
             it. Give {} to whoever checks.",
            file.display(),
            public.display()
        ));
    }
    Ok(Outcome::Done)
}

fn write(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    // Never over a file that is there: a key that is gone cannot be made again.
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut it| it.write_all(text.as_bytes()).and(it.sync_all()));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

impl Signer {
    pub fn read(file: &Path) -> anyhow::Result<Signer> {
        let name = file.display();
        let text = text_of(file, FILE_MAX)?;
        let found = std::fs::metadata(file).with_context(|| format!("cannot read `{name}`"))?;
        anyhow::ensure!(
            found.permissions().mode() & 0o077 == 0,
            "others can read the private key `{name}`: `chmod 600` it, or make another"
        );
        let pair = unpem(PRIVATE, &text).and_then(|it| Ed25519KeyPair::from_pkcs8(&it).ok());
        let pair = pair.ok_or_else(|| Misused(format!("`{name}` is no private key of Ed25519")))?;
        Ok(Signer(pair))
    }

    pub fn id(&self) -> anyhow::Result<String> {
        let der = self.0.public_key().as_der().map_err(|_| anyhow!("the key cannot be read"))?;
        Ok(id(der.as_ref()))
    }

    pub fn sign(&self, bytes: &[u8]) -> String {
        STANDARD.encode(self.0.sign(bytes))
    }
}

impl Verifier {
    pub fn read(file: &Path) -> anyhow::Result<Verifier> {
        let der = unpem(PUBLIC, &text_of(file, FILE_MAX)?);
        let key = der.as_deref().and_then(|der| {
            let raw = der.strip_prefix(&PUBLIC_HEAD).filter(|it| it.len() == 32)?;
            Some(Verifier { id: id(der), raw: raw.to_vec() })
        });
        let no_key = || Misused(format!("`{}` is no public key of Ed25519", file.display()));
        Ok(key.ok_or_else(no_key)?)
    }

    /// Whether the signature, in base64, is this key's and of these bytes.
    pub fn signed(&self, bytes: &[u8], signature: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.raw);
        STANDARD.decode(signature).is_ok_and(|it| key.verify(bytes, &it).is_ok())
    }
}

/// The digest of the public part, as it stands in its file.
fn id(public_der: &[u8]) -> String {
    digest(&SHA256, public_der).as_ref().iter().map(|it| format!("{it:02x}")).collect()
}

/// The text form of RFC 7468; ours fit on one line.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn unpem(label: &str, text: &str) -> Option<Vec<u8>> {
    let text = text.trim().strip_prefix(&format!("-----BEGIN {label}-----"))?;
    let text = text.strip_suffix(&format!("-----END {label}-----"))?;
    STANDARD.decode(text.split_whitespace().collect::<String>()).ok()
}
