import type { CallOpening, CallOutcome, Usage } from '../audit-record.ts'
import type { CallProgress } from '../contract.ts'

// Values that Postgres would refuse, or that would make the balance wrong, must not get into the account: a record that
// cannot be flushed holds back all that follow it. Each check throws RangeError.

/** From this year on JavaScript writes years with a sign, which Postgres does not read. */
const YEAR_10000 = Date.UTC(10_000, 0)

/** Lists of ids are separated by control characters. */
const PLAIN_ID = /^[!-~]{1,200}$/

export function checkId(id: string): void {
  if (!PLAIN_ID.test(id)) throw new RangeError('an id has other than 1 to 200 visible ASCII characters')
}

export function checkAmount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} is not a whole number from 0`)
}

export function checkInstant(at: number): void {
  if (!(Number.isInteger(at) && at >= 0 && at < YEAR_10000))
    throw new RangeError('at is not an instant that Postgres reads')
}

export function checkOpening(opening: CallOpening, organizationId: string): void {
  checkOwner(opening.organizationId, organizationId)
  checkId(opening.callId)
  checkInstant(opening.at)
}

export function checkOwner(organizationId: string, owner: string): void {
  if (organizationId === owner) return
  throw new RangeError(`a record of organization ${organizationId} reached another organization's ledger`)
}

export function checkProgress({ cost, usage }: CallProgress): void {
  checkAmount('cost', cost)
  checkUsage(usage)
}

export function checkOutcome(outcome: CallOutcome): void {
  checkAmount('cost', outcome.cost)
  checkAmount('status', outcome.status)
  if (outcome.status > 999) throw new RangeError('status is not an HTTP status')
  if (outcome.usage) checkUsage(outcome.usage)
}

function checkUsage(usage: Usage): void {
  const { units = {}, ...tokens } = usage
  for (const [name, count] of Object.entries(tokens)) checkAmount(`usage.${name}`, count)
  for (const [name, count] of Object.entries(units)) checkAmount(`usage.units.${name}`, count)
}
