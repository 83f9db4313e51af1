#include "server/lease_tickets.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kTicketDigits = 32;

std::string Sha256(const std::string& bytes) { return absl::HexStringToBytes(Sha256Hex(bytes)); }

std::string Hmac(std::string key, const std::string& message) {
  if (key.size() > kBlockBytes) key = Sha256(key);
  key.resize(kBlockBytes, '\0');
  std::string inner, outer;
  for (const char c : key) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  return Sha256Hex(outer + Sha256(inner + message));
}

}  // namespace

std::string LeaseTickets::TicketOf(const std::string& trial, uint32_t attempt) const {
  return Hmac(key_, absl::StrCat(trial, "\n", attempt)).substr(0, kTicketDigits);
}

bool LeaseTickets::IsGenuine(const v1::LeaseId& lease) const {
  const std::string expected = TicketOf(lease.trial(), lease.attempt());
  if (lease.ticket().size() != expected.size()) return false;
  // In a time that does not say how much of it is right.
  unsigned difference = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    difference |= static_cast<unsigned char>(expected[i] ^ lease.ticket()[i]);
  return difference == 0;
}

}  // namespace mycc
