#include "base/signature.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/file.h"
#include "base/os_error.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr size_t kIdDigits = 16;
constexpr mode_t kOwnerOnly = 0600, kForAll = 0644, kOthers = 077;

using Key = std::shared_ptr<EVP_PKEY>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Key Owned(EVP_PKEY* key) { return {key, EVP_PKEY_free}; }
bool IsEd25519(const Key& key) { return key != nullptr && EVP_PKEY_is_a(key.get(), "ED25519") == 1; }

Bio ReaderOf(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

// In place of OpenSSL's own, which asks at the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*data*/) { return -1; }

std::string IdOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  MYCC_CHECK(size > 0) << "a public key without a DER form";
  std::string id =
      Sha256Hex({reinterpret_cast<const char*>(der), static_cast<size_t>(size)}).substr(0, kIdDigits);
  OPENSSL_free(der);
  return id;
}

// A file that was not there before, with this mode whatever the umask is.
absl::Status WriteNew(const std::string& path, std::string_view text, mode_t mode) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) {
    if (errno == EEXIST)
      return absl::AlreadyExistsError(absl::StrCat(path, ": exists already; a key is a new file"));
    return OsError("make", path);
  }
  absl::Status status;
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    status = OsError("write", path);
  if (status.ok() && fchmod(file, mode) != 0) status = OsError("set the mode of", path);
  close(file);
  if (status.ok()) status = SyncFile(path);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

}  // namespace

PublicKey::PublicKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)), id_(IdOf(key_.get())) {}

absl::StatusOr<std::vector<PublicKey>> PublicKey::ReadAll(const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostSecretBytes));
  const Bio reader = ReaderOf(text);
  std::vector<PublicKey> keys;
  while (true) {
    const Key key = Owned(PEM_read_bio_PUBKEY(reader.get(), nullptr, NoPassword, nullptr));
    if (key == nullptr) break;
    if (!IsEd25519(key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": has a public key of the type ", EVP_PKEY_get0_type_name(key.get()), "; expected Ed25519"));
    }
    keys.push_back(PublicKey(key));
  }
  ERR_clear_error();  // the end of the file is one
  if (!keys.empty()) return keys;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has no public key; expected PEM, as `mycc-tune log keygen` writes NAME.pub"));
}

bool PublicKey::Verifies(std::string_view message, std::string_view signature) const {
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const bool fits =
      context != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message), message.size()) ==
          1;
  ERR_clear_error();
  return fits;
}

absl::StatusOr<PrivateKey> PrivateKey::Read(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OsError("read", path);
  if ((info.st_mode & kOthers) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: others than its owner may use this private key (mode %04o); expected 0600, by `chmod 600`", path,
        info.st_mode & 07777));
  }
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostSecretBytes));
  const Bio reader = ReaderOf(text);
  const Key key = Owned(PEM_read_bio_PrivateKey(reader.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (IsEd25519(key)) return PrivateKey(key);
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": has no private Ed25519 key without a password; expected PEM, as `mycc-tune log keygen` writes it"));
}

absl::StatusOr<std::string> PrivateKey::Sign(std::string_view message) const {
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  size_t size = 0;
  std::string signature;
  bool is_signed =
      context != nullptr &&
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, public_key_.key_.get()) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(message), message.size()) == 1;
  if (is_signed) {
    signature.resize(size);
    is_signed = EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                               Bytes(message), message.size()) == 1;
  }
  ERR_clear_error();
  if (is_signed) return signature;
  return absl::InternalError("OpenSSL does not sign with this key");
}

absl::StatusOr<PublicKey> MakeKeyPair(const std::string& name) {
  const Key key = Owned(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const Bio secret(BIO_new(BIO_s_mem()), BIO_free), shared(BIO_new(BIO_s_mem()), BIO_free);
  const bool made =
      key != nullptr && secret != nullptr && shared != nullptr &&
      PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
      PEM_write_bio_PUBKEY(shared.get(), key.get()) == 1;
  ERR_clear_error();
  if (!made) return absl::InternalError("OpenSSL makes no Ed25519 key");
  MYCC_RETURN_IF_ERROR(WriteNew(name, Written(secret.get()), kOwnerOnly));
  const absl::Status published = WriteNew(absl::StrCat(name, ".pub"), Written(shared.get()), kForAll);
  if (published.ok()) return PublicKey(key);
  unlink(name.c_str());
  return published;
}

}  // namespace mycc
