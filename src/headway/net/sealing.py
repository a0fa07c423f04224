"""Secrets at rest: small secrets are encrypted before they are stored, and opened when needed.

AES-256-GCM under a key that is never in the store. Whoever has a copy of the store alone can read
nothing that was sealed, cannot change it unseen, and cannot move it from one record to another.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headway.errors import BadSettings, SealedElsewhere
from headway.net.redaction import SECRETS

VARIABLE = "HEADWAY_SECRET_KEYS"
FILE = "secret.key"
LOCK = f"{FILE}-lock"
KEY_BYTES = 32
NONCE_BYTES = 12
MAX_KEY_FILE_BYTES = 65_536  # some hundred keys
HOW_TO_MAKE_ONE = "make one with `python -c 'import secrets; print(secrets.token_urlsafe(32))'`"

_SEALED = re.compile(r"hw1\.([0-9a-f]{12})\.([A-Za-z0-9_-]+)", re.A)
_ENTER_AGAIN = "enter the secret again"


def new_key() -> str:
    """A key as it stands in the file or the variable."""
    return secrets.token_urlsafe(KEY_BYTES)


class Vault:
    """Seals with its first key, and opens what any of its keys has sealed. So a key is rotated by
    putting a new one before it, sealing again what the old one has sealed, and removing it.
    """

    def __init__(self, keys: Iterable[str], source: str) -> None:
        """`source` is where the keys come from, for messages. Nothing here keeps their text."""
        self._source = source
        self._ciphers = _ciphers_of(keys, source)  # replaced as a whole, the first one seals
        self._file: str | None = None  # that is read again when it has changed
        self._read_at = 0, 0

    @classmethod
    def at(cls, directory: str, environment: Mapping[str, str] = os.environ) -> Vault:
        """With the keys of HEADWAY_SECRET_KEYS, or else of the directory's file `secret.key`, which
        is made if it is not there.
        """
        path = os.path.join(directory, FILE)
        if environment.get(VARIABLE) is None and not os.path.lexists(path):
            _make_key_file(directory, path)
        read_at = _changed_at(path)  # before it is read: what changes meanwhile is read again
        source, keys = keys_at(directory, environment)
        vault = cls(keys, source)
        if source != VARIABLE:
            vault._file, vault._read_at = path, read_at
        return vault

    @classmethod
    def made_at(cls, directory: str) -> Vault:
        """The same, with the directory: who has no secret yet needs no place for a key."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return cls.at(directory)

    def seal(self, text: str, about: str) -> str:
        """`about` names the record that the secret belongs to, such as "channel/main/api_key". It
        is not stored: only who names the same record can open the secret.
        """
        self._read_again()  # a key that was taken out of the file seals nothing more
        nonce = secrets.token_bytes(NONCE_BYTES)
        # Any text comes back as it was, half characters too: no error can quote what is sealed.
        plain = text.encode("utf-8", "surrogatepass")
        current, cipher = next(iter(self._ciphers.items()))
        sealed = nonce + cipher.encrypt(nonce, plain, _bound_to(current, about))
        return f"hw1.{current}.{_encoded(sealed)}"

    def unseal(self, sealed: str, about: str) -> str:
        """Raises `SealedElsewhere` if that is not possible."""
        key_id, content = _taken_apart(sealed)
        if key_id not in self._ciphers:
            self._read_again()  # another server may have put a new one first
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise SealedElsewhere(
                f"a stored secret was sealed with key {key_id}, which is missing from "
                f"{self._source}; put the key back, or {_ENTER_AGAIN}"
            )
        nonce, ciphertext = content[:NONCE_BYTES], content[NONCE_BYTES:]
        # Raised after the `except`, so that the error carries nothing else along.
        plain = None
        with suppress(InvalidTag):
            plain = cipher.decrypt(nonce, ciphertext, _bound_to(key_id, about))
        if plain is None:
            raise SealedElsewhere(
                f"a stored secret was sealed for another record, or was changed since, though its "
                f"key {key_id} is in {self._source}; {_ENTER_AGAIN}"
            )
        return plain.decode("utf-8", "surrogatepass")

    @property
    def ids(self) -> list[str]:
        """Of its keys; the first one seals."""
        self._read_again()
        return list(self._ciphers)

    @property
    def file(self) -> str | None:
        """Where its keys are. None: in the environment."""
        return self._file

    def _read_again(self) -> None:
        """If the file has changed. One that cannot be used now changes nothing."""
        if self._file is None:
            return
        changed_at = _changed_at(self._file)
        if changed_at == self._read_at:
            return
        with suppress(BadSettings):
            keys = _keys_in(self._file)
            self._ciphers = _ciphers_of(keys, self._source)
            self._read_at = changed_at

    def __repr__(self) -> str:
        return f"<Vault with {len(self._ciphers)} keys of {self._source}>"


# ---------------------------------------------------------------------- keys and their texts


def keys_at(
    directory: str, environment: Mapping[str, str] = os.environ
) -> tuple[str, list[str]]:  # fmt: skip
    """Where the keys of a data directory come from, and the keys. None is made."""
    told = environment.get(VARIABLE)
    if told is None:
        path = os.path.join(directory, FILE)
        return path, _keys_in(path)
    keys = [key.strip() for key in told.split(",") if key.strip()]
    for key in keys:  # should one ever be on its way into a log
        SECRETS.add(key)
    return VARIABLE, keys


def ids_at(directory: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The ids of the keys that are there, in order; none, if there is no file yet."""
    if environment.get(VARIABLE) is None and not os.path.lexists(os.path.join(directory, FILE)):
        return []
    source, keys = keys_at(directory, environment)
    return list(_ciphers_of(keys, source))


def id_of(key: str) -> str:
    return next(iter(_ciphers_of([key], "the key")))


def _keys_in(path: str) -> list[str]:
    keys = [key.strip() for key in _read_key_file(path).splitlines() if key.strip()]
    for key in keys:
        SECRETS.add(key)
    return keys


def _ciphers_of(keys: Iterable[str], source: str) -> dict[str, AESGCM]:
    """By the ids of the keys, in order."""
    ciphers: dict[str, AESGCM] = {}
    for number, text in enumerate(keys, start=1):
        key = _decoded_key(text)
        if key is None:
            raise BadSettings(
                f"{source}: key {number} is not {KEY_BYTES} bytes in base64url; {HOW_TO_MAKE_ONE}"
            )
        ciphers.setdefault(_key_id(key), AESGCM(key))
    if not ciphers:
        raise BadSettings(f"{source}: there is no key in it; {HOW_TO_MAKE_ONE}")
    return ciphers


def _key_id(key: bytes) -> str:
    """Says which key it is, and nothing about it."""
    return hashlib.sha256(b"headway key id\0" + key).hexdigest()[:12]


def _decoded_key(text: str) -> bytes | None:
    key = _decoded(text.rstrip("="))
    return key if key is not None and len(key) == KEY_BYTES else None


def _bound_to(key_id: str, about: str) -> bytes:
    if not about:
        raise ValueError("name the record that the secret belongs to")
    return f"hw1.{key_id}.{about}".encode("utf-8", "surrogatepass")


def _taken_apart(sealed: str) -> tuple[str, bytes]:
    """The id of its key, and the nonce with the ciphertext."""
    found = _SEALED.fullmatch(sealed)
    content = _decoded(found[2]) if found else None
    if found is None or content is None or len(content) < NONCE_BYTES + 16:  # 16: the tag
        raise SealedElsewhere(f"a stored secret is damaged or was never sealed; {_ENTER_AGAIN}")
    return found[1], content


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes | None:
    """None: it is no base64url, or not as we write it. One content has one text."""
    content = None
    with suppress(binascii.Error, ValueError):
        padded = text + "=" * (-len(text) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True)
    return content if content is not None and _encoded(content) == text else None


# ---------------------------------------------------------------------- the file


def _make_key_file(directory: str, path: str) -> None:
    """It appears whole and readable for us alone, and never in the place of another: of two
    processes that start at once, both go on with the key of one.
    """
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{FILE}.", dir=directory)  # with mode 600
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(f"{new_key()}\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
        _sync_directory(directory)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be made ({error.strerror}); make the directory writable, "
            f"or put a key into {VARIABLE}"
        ) from None


@contextmanager
def changing(directory: str) -> Iterator[None]:
    """For whoever reads the keys and writes others in their place: one at a time, of all threads of
    all servers that share the directory. Of two at once, one would lose the key of the other.
    """
    path = os.path.join(directory, LOCK)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be made ({error.strerror}); make the directory writable"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # each has opened it anew, so threads wait as well
        yield
    finally:
        os.close(handle)


def write_key_file(directory: str, keys: Iterable[str]) -> None:
    """In the place of the one that is there, or is not: whole, and for us alone. Who has read keys
    before does so while `changing`.
    """
    path = os.path.join(directory, FILE)
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{FILE}.", dir=directory)  # with mode 600
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write("".join(f"{key}\n" for key in keys))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
        _sync_directory(directory)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be written ({error.strerror}); make the directory writable"
        ) from None


def _changed_at(path: str) -> tuple[int, int]:
    """Another pair of numbers whenever the file is another one."""
    try:
        about = os.stat(path)
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_ino


def _sync_directory(directory: str) -> None:
    """A key that a power cut takes back would leave secrets that nobody can open."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_key_file(path: str) -> str:
    try:
        with open(path, "rb", opener=_opened_at_once) as file:
            about = os.fstat(file.fileno())  # of what was opened, whatever has the name now
            if not stat.S_ISREG(about.st_mode):
                raise BadSettings(f"{path} is not a file; move it away, or set {VARIABLE}")
            if os.name == "posix" and about.st_mode & 0o077:
                raise BadSettings(
                    f"{path} can be read or changed by other users; run `chmod 600` on it"
                )
            content = file.read(MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be read ({error.strerror}); give the process the right to, "
            f"or put its keys into {VARIABLE}"
        ) from None
    if len(content) > MAX_KEY_FILE_BYTES:
        raise BadSettings(f"{path} is too long; it has one key on each line, and nothing else")
    # What is no ASCII is no key either, and is refused as one.
    return content.decode("ascii", "replace")


def _opened_at_once(path: str, flags: int) -> int:
    """A pipe of this name would have us wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
