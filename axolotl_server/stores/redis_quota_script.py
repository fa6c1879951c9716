"""What Redis runs to take a call's claims: all of them in this one step, or none."""

from typing import Final

__all__ = ["TAKE_SCRIPT"]

TAKE_SCRIPT: Final = """\
-- The same as axolotl_core.quota_charge, in numbers that floating point holds exactly.
-- KEYS: one for each claim. ARGV: the time in microseconds, empty for the clock of Redis, so that replicas agree;
-- then kind, cost, capacity and step for each claim. Answers 0, or which claim is refused and for how long.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local claims = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  local at = 4 * i - 3
  local claim = {
    bucket = ARGV[at + 1] == 'bucket',
    cost = tonumber(ARGV[at + 2]),
    capacity = tonumber(ARGV[at + 3]),
    step = tonumber(ARGV[at + 4]),
  }
  if value then
    local amount, stamp = string.match(value, '^(%d+):(%d+)$')
    claim.amount, claim.stamp = tonumber(amount), tonumber(stamp)
  end
  claims[i] = claim
end

local function settle(claim)
  if claim.bucket then
    local passed = math.max(0, now - (claim.stamp or now))
    claim.amount = math.max(0, (claim.amount or 0) - passed * claim.step)
    claim.stamp = now
    return
  end
  local number = math.floor(now / claim.step)
  if not claim.stamp or claim.stamp < number or claim.stamp > number + 1 then
    claim.amount, claim.stamp = 0, number
  end
end

local function ending(claim)
  if claim.bucket then
    return claim.stamp + math.ceil(claim.amount / claim.step)
  end
  return (claim.stamp + 1) * claim.step
end

local function wait(claim)
  if claim.bucket then
    return math.ceil((claim.amount + claim.cost - claim.capacity) / claim.step)
  end
  return ending(claim) - now
end

local function keep(key, claim)
  local milliseconds = math.max(1, math.ceil((ending(claim) - now) / 1000))
  local value = string.format('%.0f:%.0f', claim.amount, claim.stamp)
  redis.call('SET', key, value, 'PX', string.format('%.0f', milliseconds))
end

local refused, longest = 0, 0
for i, claim in ipairs(claims) do
  local before = claim.stamp
  settle(claim)
  if before and claim.stamp < before then
    keep(KEYS[i], claim)
  end
  if claim.amount + claim.cost > claim.capacity and wait(claim) > longest then
    refused, longest = i, wait(claim)
  end
end
if refused > 0 then
  return {refused, string.format('%.0f', longest)}
end

for i, claim in ipairs(claims) do
  claim.amount = claim.amount + claim.cost
  keep(KEYS[i], claim)
end
return {0, '0'}
"""
