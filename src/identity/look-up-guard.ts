import ipaddr from 'ipaddr.js'
import { BoundedMap } from '../lib/bounded-map.ts'
import { countShared, hasSharedRoom, type SharedLimit, type SharedLimitDeps } from '../lib/shared-limits.ts'

// An invented key, or token of a session, of the right shape costs a query each time, because refusals are not cached. An address
// whose keys keep being refused therefore gets only a few look-ups a second until the minute is over. Keys that this isolate has cached are not
// affected (see identify). The other keys of the address share these look-ups, because an address can be an office with many
// valid keys and one wrong key in a loop. A valid key that this isolate does not know can be refused meanwhile: the alternative
// is a query to Postgres for every guess.

interface Bounds {
  /** Look-ups a minute that may end in a refusal before look-ups are restricted. */
  refusals: number
  /** Look-ups a second while they are restricted. */
  lookUps: number
}

const ONE_ADDRESS: Bounds = { refusals: 60, lookUps: 5 }
/** Shared by all callers whose address is unknown, as in local development. */
const UNKNOWN_ADDRESS: Bounds = { refusals: 600, lookUps: 50 }

interface AddressCounts {
  minuteBegan: number
  refusals: number
  secondBegan: number
  lookUps: number
}

/** Counts of this isolate for each address. They are plain data: no value belongs to a request. */
const countsByAddress = new BoundedMap<string, AddressCounts>(10_000)

/** Refused look-ups a minute of one address over all isolates. Beyond it, keys from there are not looked up. */
const REFUSED_KEYS: SharedLimit = { name: 'refused-keys', perMinute: 300 }

/**
 * Whether a key from this address, which this isolate has not cached, may be looked up in Postgres. A look-up that is
 * allowed while look-ups are restricted is counted. While Redis is away only the bounds of the isolate apply.
 * @param address null when it is unknown.
 */
export async function mayLookUp(deps: SharedLimitDeps, address: string | null): Promise<boolean> {
  if (!mayLookUpHere(address, deps.clock())) return false
  return address === null || hasSharedRoom(deps, REFUSED_KEYS, networkOf(address))
}

/** Counts a look-up for this address that ended in a refusal. */
export async function noteRefusal(deps: SharedLimitDeps, address: string | null): Promise<void> {
  noteRefusalHere(address, deps.clock())
  if (address !== null) await countShared(deps, REFUSED_KEYS, networkOf(address))
}

function mayLookUpHere(address: string | null, now: number): boolean {
  const bounds = boundsOf(address)
  const counts = countsByAddress.get(networkOf(address))
  if (!counts || now - counts.minuteBegan >= 60_000 || counts.refusals < bounds.refusals) return true
  if (now - counts.secondBegan >= 1_000) Object.assign(counts, { secondBegan: now, lookUps: 0 })
  if (counts.lookUps >= bounds.lookUps) return false
  counts.lookUps += 1
  return true
}

function noteRefusalHere(address: string | null, now: number): void {
  const network = networkOf(address)
  const counts = countsByAddress.get(network)
  if (counts && now - counts.minuteBegan < 60_000) {
    counts.refusals += 1
    return
  }
  countsByAddress.set(network, { minuteBegan: now, refusals: 1, secondBegan: 0, lookUps: 0 })
}

const boundsOf = (address: string | null) => (address === null ? UNKNOWN_ADDRESS : ONE_ADDRESS)

/** A /64 counts as one IPv6 address, because one caller usually has all of it. */
function networkOf(address: string | null): string {
  if (address === null || !ipaddr.isValid(address)) return address ?? ''
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
