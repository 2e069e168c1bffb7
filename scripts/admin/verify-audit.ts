import { counted } from '../../src/lib/counted.ts'
import {
  chainSection,
  type Fault,
  Found,
  faultsSection,
  type HeadFault,
  headsSection,
  type Section,
  type VerifiedChain,
  verdictOf,
} from './audit-report.ts'
import type { Call, Outcome } from './command.ts'
import { AdminError, type Item, type Query, withQuery } from './gateway-client.ts'
import { organizationId } from './ids-by-name.ts'
import { verifyExport } from './verify-export.ts'

/** Rows verified in one request. */
const PAGE_SIZE = '1000'

/** The organization id under which changes to the deployment itself are recorded. */
const DEPLOYMENT = '00000000-0000-0000-0000-000000000000'

interface Chain {
  organization_id: string
  shard: number
  sequence: number
}

interface ComparedHeads {
  organization_id: string
  organization: string
  faults: HeadFault[]
  /** Why the ledger could not be compared; null when it was. */
  failure: string | null
}

interface UnrecordedRow {
  table: string
  organization_id: string
  name: string
}

interface CheckpointFault {
  checkpoint_id: string
  reason: string
  detail: string
}

/**
 * Verifies all chains from their first record on, page by page, with the rows of usage and credits that were taken from
 * their records; then the chains against their ledgers, rows without a record, and the checkpoints. Ledgers write pending
 * records first, so that what happened up to now is covered; one that cannot changes nothing about the rest.
 */
export async function verifyAudit(call: Call): Promise<Outcome> {
  const file = call.options.text('file')
  if (file !== undefined) return verifyExport(call, file)
  const names = await organizationNames(call)
  const nameOf = (id: string) => names.get(id) ?? `(unknown ${id})`
  const only = call.options.text('organization')
  const wanted = only === undefined ? null : await organizationId(call, only)
  await flushLedgers(call, wanted === null ? [...names.keys()] : [wanted])
  const stored = ((await call.gateway.request('GET', '/audit/chains')).data as Chain[]).filter(
    ({ organization_id: id }) => wanted === null || id === wanted,
  )
  const organizations = new Set([
    ...(wanted === null ? names.keys() : [wanted]),
    ...stored.map(({ organization_id: id }) => id),
  ])

  const heads: ComparedHeads[] = []
  for (const id of organizations) heads.push(await compareHeads(call, id, nameOf(id)))
  const unknown = new Set(heads.flatMap(unknownChains))
  const chains: VerifiedChain[] = []
  for (const chain of stored.filter((each) => !unknown.has(chainName(each)))) {
    chains.push(await verifyChain(call, chain, nameOf(chain.organization_id)))
  }
  const unrecorded = await findUnrecorded(call, wanted)
  const checkpoints = await verifyCheckpoints(call, wanted)
  const sections = [
    ...chains.map(chainSection),
    ...heads.map(comparedSection),
    unrecordedSection(unrecorded, nameOf),
    checkpointSection(checkpoints),
  ]
  const { line, exitCode } = verdictOf(sections)
  return {
    kind: 'report',
    lines: [...sections.flatMap(({ lines }) => lines), line],
    item: { ok: exitCode === 0, chains, heads, unrecorded, checkpoints },
    exitCode,
  }
}

async function organizationNames({ gateway }: Call): Promise<Map<string, string>> {
  const { items } = await gateway.list('/organizations', {}, Number.MAX_SAFE_INTEGER)
  const names = items.map(({ id, slug }) => [String(id), String(slug)] as const)
  return new Map([[DEPLOYMENT, '(deployment)'], ...names])
}

async function flushLedgers({ gateway, note }: Call, organizationIds: string[]): Promise<void> {
  for (const id of organizationIds) {
    const path = id === DEPLOYMENT ? '/ledger/flush' : `/organizations/${id}/ledger/flush`
    try {
      const { pending } = await gateway.request('POST', path)
      if (pending !== 0)
        note(`The ledger of ${id} still holds what is not verified: ${counted(Number(pending), 'record')}.`)
    } catch (error) {
      note(`The ledger of ${id} could not write what it holds: ${(error as Error).message}`)
    }
  }
}

async function compareHeads({ gateway }: Call, id: string, organization: string): Promise<ComparedHeads> {
  const compared = { organization_id: id, organization }
  try {
    const { faults } = await gateway.request('GET', withQuery('/audit/heads', { organization_id: id }))
    return { ...compared, faults: faults as HeadFault[], failure: null }
  } catch (error) {
    return { ...compared, faults: [], failure: (error as Error).message }
  }
}

function comparedSection({ organization, faults, failure }: ComparedHeads): Section {
  if (failure === null) return headsSection(organization, faults)
  return { lines: [`UNKNOWN ${organization}: not compared with its ledger (${failure})`], result: 'unknown' }
}

const chainName = ({ organization_id: id, shard }: Pick<Chain, 'organization_id' | 'shard'>) =>
  `${id}:${shard}`

/** Chains that no ledger has: their records are not verified one by one. */
const unknownChains = ({ organization_id, faults }: ComparedHeads): string[] =>
  faults
    .filter(({ reason }) => reason === 'unknown_shard')
    .map(({ shard }) => chainName({ organization_id, shard }))

async function verifyChain({ gateway }: Call, chain: Chain, organization: string): Promise<VerifiedChain> {
  const { organization_id, shard } = chain
  const found = new Found<Fault>()
  let [after, verified] = [0, 0]
  let page: Item
  do {
    const query = { organization_id, shard: String(shard), after_sequence: String(after), limit: PAGE_SIZE }
    page = await gateway.request('GET', withQuery('/audit/verify', query))
    if (typeof page.to_sequence !== 'number') throw new AdminError('the gateway did not say what it verified')
    if (found.first === null) verified = after + Number(page.verified)
    found.add(page.faults as Fault[])
    after = page.to_sequence
  } while (page.has_more === true)
  // The chain had this record a moment ago.
  if (after < chain.sequence) {
    const detail = `the chain should reach record ${chain.sequence}`
    found.add([{ sequence: after + 1, reason: 'missing', detail }])
  }
  const { first, faults, more } = found
  return { organization_id, organization, shard, verified, first_broken: first, faults, more_faults: more }
}

async function findUnrecorded(call: Call, wanted: string | null): Promise<Found<UnrecordedRow>> {
  const found = new Found<UnrecordedRow>()
  const query = { organization_id: wanted ?? undefined, limit: PAGE_SIZE }
  await eachPage(call, '/audit/unrecorded', query, ({ data }) => found.add(data as UnrecordedRow[]))
  return found
}

const unrecordedSection = (found: Found<UnrecordedRow>, nameOf: (id: string) => string) =>
  faultsSection(
    'usage and credits',
    found,
    ({ table, organization_id: id, name }) => `${nameOf(id)}: ${table} (unrecorded: no record of ${name})`,
    'usage and credits: every row has its record',
  )

interface VerifiedCheckpoints {
  checkpoints: number
  first_broken: CheckpointFault | null
  faults: CheckpointFault[]
  more: number
}

async function verifyCheckpoints(call: Call, wanted: string | null): Promise<VerifiedCheckpoints> {
  const found = new Found<CheckpointFault>()
  let checkpoints = 0
  await eachPage(call, '/audit/checkpoints/verify', { organization_id: wanted ?? undefined }, (page) => {
    checkpoints += Number(page.checkpoints)
    found.add(page.faults as CheckpointFault[])
  })
  return { checkpoints, first_broken: found.first, faults: found.faults, more: found.more }
}

const checkpointSection = (verified: VerifiedCheckpoints) =>
  faultsSection(
    'checkpoints',
    verified,
    ({ checkpoint_id: id, reason, detail }) => `checkpoint ${id} (${reason}: ${detail})`,
    `checkpoints: ${verified.checkpoints === 0 ? 'none yet' : verified.checkpoints}`,
  )

/** Reads a list by its cursors. */
export async function eachPage(
  { gateway }: Pick<Call, 'gateway'>,
  path: string,
  query: Query,
  read: (page: Item) => void,
): Promise<void> {
  let cursor: string | undefined
  do {
    const page = await gateway.request('GET', withQuery(path, { ...query, cursor }))
    read(page)
    cursor = typeof page.next_cursor === 'string' ? page.next_cursor : undefined
  } while (cursor !== undefined)
}
