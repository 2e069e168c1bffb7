import type { AnswerOf } from '../../src/client/management-client.ts'
import { counted } from '../../src/lib/counted.ts'
import type { Outcome } from './command.ts'
import { patiently } from './gateway.ts'
import { DEPLOYMENT, organizationNames } from './organization-names.ts'
import type { TableCall } from './table.ts'

type Reflushed = AnswerOf<'installation-ledger.reflush'>['shards'][number]
type Checked = AnswerOf<'installation-ledger.check'>['shards'][number]

/** What none of the ledgers has: it is stated by every report, because a restore loses it silently. */
const NOT_COVERED = [
  'Not covered, because only Postgres had it: changes by the management API after the restored time (keys, users, rights and their',
  'revocation, models, policies, agents, integrations), final items of responses and conversations, runs, connect sessions.',
]

/** Flushes in a row without progress before it is left to the ledger. */
const MOST_IDLE_FLUSHES = 5

/**
 * Has ledgers write again what Postgres has lost, one organization after the other, and waits until it is written.
 * @returns exit code 3 where records are lost, a chain is in conflict, or a ledger does not answer.
 */
export async function reflushAudit(call: TableCall): Promise<Outcome> {
  const { gateway, options, progress } = call
  const { names, wanted } = await chosen(call)
  const from = options.number('from-sequence')
  const shard = options.number('shard')
  const body = { ...(from !== undefined && { from_sequence: from }), ...(shard !== undefined && { shard }) }
  const lines: string[] = []
  const organizations: Array<{ organization: string; shards: Reflushed[]; failure: string | null }> = []
  for (const id of wanted) {
    const organization = names.get(id) ?? id
    progress(`writing again what the database lacks of ${organization}`)
    try {
      const request = { body: { ...body, ...(id !== DEPLOYMENT && { organization_id: id }) } }
      const { shards } = await patiently(() => gateway.call('installation-ledger.reflush', request))
      const pending = await flushAll(call, id)
      lines.push(...shards.map((each) => reflushedLine(organization, each)))
      if (pending > 0) lines.push(`WAITS   ${organization}: ${counted(pending, 'record')} to be written`)
      organizations.push({ organization, shards, failure: null })
    } catch (error) {
      const failure = (error as Error).message
      lines.push(`UNKNOWN ${organization}: ${failure}`)
      organizations.push({ organization, shards: [], failure })
    }
  }
  const isWhole = (shards: Reflushed[]) =>
    shards.every(({ lost, conflict }) => lost === null && conflict === null)
  const ok = organizations.every(({ shards, failure }) => failure === null && isWhole(shards))
  lines.push(ok ? 'All that ledgers have is in the database or on its way.' : 'Records are missing.')
  lines.push(...NOT_COVERED)
  return { kind: 'report', lines, item: { ok, organizations }, exitCode: ok ? 0 : 3 }
}

/**
 * Compares ledgers with Postgres without changing anything: ends of chains, balances, and how far back a ledger could write
 * again. @returns exit code 3 where they differ.
 */
export async function checkLedgers(call: TableCall): Promise<Outcome> {
  const { gateway, progress } = call
  const { names, wanted } = await chosen(call)
  const lines: string[] = []
  const organizations: Array<{ organization: string; ok: boolean; shards: Checked[] }> = []
  for (const id of wanted) {
    const organization = names.get(id) ?? id
    progress(`comparing ${organization}`)
    const query = id === DEPLOYMENT ? {} : { organization_id: id }
    const { ok, shards } = await patiently(() => gateway.call('installation-ledger.check', { query }))
    lines.push(...shards.map((each) => checkedLine(organization, each)))
    organizations.push({ organization, ok, shards })
  }
  const ok = organizations.every((each) => each.ok)
  lines.push(ok ? 'Ledgers and the database agree.' : 'Ledgers and the database differ: run `audit reflush`.')
  return { kind: 'report', lines, item: { ok, organizations }, exitCode: ok ? 0 : 3 }
}

async function chosen(call: TableCall): Promise<{ names: Map<string, string>; wanted: string[] }> {
  const names = await organizationNames(call)
  const only = call.options.text('organization')
  const wanted = only === undefined ? [...names.keys()] : [await call.find('organization', only)]
  return { names, wanted }
}

/** Flushes until nothing is pending, or nothing more is written. @returns what is still pending. */
async function flushAll({ gateway, progress }: TableCall, id: string): Promise<number> {
  let [least, idle] = [Number.POSITIVE_INFINITY, 0]
  for (;;) {
    const { pending } = await patiently(() =>
      id === DEPLOYMENT
        ? gateway.call('installation-ledger.flush', {})
        : gateway.call('ledger.flush', { path: { organizationId: id } }),
    )
    idle = pending < least ? 0 : idle + 1
    least = Math.min(least, pending)
    if (pending === 0 || idle === MOST_IDLE_FLUSHES) return pending
    progress(`${counted(pending, 'record')} to be written`)
  }
}

function reflushedLine(organization: string, reflushed: Reflushed): string {
  const { shard, stored, confirmed, again, pending, lost, conflict } = reflushed
  const name = `${organization} shard ${shard}`
  if (conflict !== null) return `BROKEN  ${name}: ${conflict}; nothing was written`
  const behind =
    again === 0
      ? `has all ${counted(confirmed, 'confirmed record')}${pending === 0 ? '' : `, ${pending} more were on their way`}`
      : `${counted(again, 'record')} written again after ${stored}`
  if (lost === null) return `ok      ${name}: ${behind}`
  return `LOST    ${name}: records ${lost.from} to ${lost.to} are in neither; ${behind}`
}

function checkedLine(organization: string, checked: Checked): string {
  const { shard, head, confirmed, stored, behind, pending, kept_from: kept, balance } = checked
  const name = `${organization} shard ${shard}`
  const window =
    kept === null ? 'keeps no record' : `keeps records ${kept.sequence} to ${head}, from ${kept.at}`
  const waits = pending === 0 ? '' : `, ${counted(pending, 'record')} to be written`
  const ends = `${stored} of ${confirmed} confirmed records${waits}; ${window}`
  if (behind > 0) return `BEHIND  ${name}: ${ends}`
  if (balance.agrees === false) {
    return `DIFFERS ${name}: balance ${balance.ledger} in the ledger, ${balance.stored} in the database; ${ends}`
  }
  const agrees = balance.agrees === null ? 'balance not compared' : `balance ${balance.stored}`
  return `ok      ${name}: ${agrees}, ${ends}`
}
