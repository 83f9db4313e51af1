// Signs leases: a ticket is the HMAC-SHA-256 (RFC 2104) of trial and attempt under a key that is kept in the
// log (db/server_key.h). So nobody else can make one, and the server recognizes its tickets after a restart
// without storing them. Pure functions of the key. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "proto/worker.pb.h"

namespace mycc {

class LeaseTickets {
 public:
  explicit LeaseTickets(std::string key) : key_(std::move(key)) {}

  // 32 hexadecimal digits.
  std::string TicketOf(const std::string& trial, uint32_t attempt) const;
  // Whether the lease shows its own ticket.
  bool IsGenuine(const v1::LeaseId& lease) const;

 private:
  std::string key_;
};

}  // namespace mycc
