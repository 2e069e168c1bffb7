import ipaddr from 'ipaddr.js'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { countShared, hasSharedRoom, type SharedLimit, type SharedLimitDeps } from '../shared-limits.ts'

// A made-up key of the right shape costs a query each time, because refusals are never remembered. So an address whose
// keys keep being refused gets only a trickle of look-ups for a while. Keys that this isolate has known lately are
// looked up all the same (see identify), and others still get in with the trickle: behind one address there may be an
// office of callers with good keys besides the one that has a wrong key in a loop. A good key that this isolate does
// not know can be refused while the trickle is used up, which is the price of not asking Postgres for every guess.

interface Bounds {
  /** Look-ups a minute that may end in a refusal before the trickle begins. */
  refusals: number
  /** Look-ups a second from then on, until the minute is over. */
  lookUps: number
}

const ONE_ADDRESS: Bounds = { refusals: 60, lookUps: 5 }
/** Shared by all callers whose address is unknown, as in local development. */
const UNKNOWN_ADDRESS: Bounds = { refusals: 600, lookUps: 50 }

interface Conduct {
  minuteBegan: number
  refusals: number
  secondBegan: number
  lookUps: number
}

/** Of this isolate alone, and plain data: nothing in it belongs to a request. */
const conducts = new BoundedMap<string, Conduct>(10_000)

/** Refused look-ups a minute of one address over all isolates, from which on its keys are not looked up. */
const REFUSED_KEYS: SharedLimit = { name: 'refused-keys', perMinute: 300 }

/**
 * Whether a key from this address, which this isolate does not know, may be looked up in Postgres. A look-up that is
 * allowed to an address under suspicion is counted. While Redis is away the isolate's own bounds hold alone.
 * @param address null when it is unknown.
 */
export async function mayLookUp(deps: SharedLimitDeps, address: string | null): Promise<boolean> {
  if (!mayLookUpHere(address, deps.clock())) return false
  return address === null || hasSharedRoom(deps, REFUSED_KEYS, networkOf(address))
}

/** Notes that a look-up for this address ended in a refusal. */
export async function noteRefusal(deps: SharedLimitDeps, address: string | null): Promise<void> {
  noteRefusalHere(address, deps.clock())
  if (address !== null) await countShared(deps, REFUSED_KEYS, networkOf(address))
}

function mayLookUpHere(address: string | null, now: number): boolean {
  const bounds = boundsOf(address)
  const conduct = conducts.get(networkOf(address))
  if (!conduct || now - conduct.minuteBegan >= 60_000 || conduct.refusals < bounds.refusals) return true
  if (now - conduct.secondBegan >= 1_000) Object.assign(conduct, { secondBegan: now, lookUps: 0 })
  if (conduct.lookUps >= bounds.lookUps) return false
  conduct.lookUps += 1
  return true
}

function noteRefusalHere(address: string | null, now: number): void {
  const network = networkOf(address)
  const conduct = conducts.get(network)
  if (conduct && now - conduct.minuteBegan < 60_000) {
    conduct.refusals += 1
    return
  }
  conducts.set(network, { minuteBegan: now, refusals: 1, secondBegan: 0, lookUps: 0 })
}

const boundsOf = (address: string | null) => (address === null ? UNKNOWN_ADDRESS : ONE_ADDRESS)

/** An IPv6 caller usually has all of a /64 to call from, so that is what counts as one address. */
function networkOf(address: string | null): string {
  if (address === null || !ipaddr.isValid(address)) return address ?? ''
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
