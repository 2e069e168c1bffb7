import type { AnswerOf } from '../../src/client/management-client.ts'
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
import type { Outcome } from './command.ts'
import { patiently } from './gateway.ts'
import { DEPLOYMENT, organizationNames } from './organization-names.ts'
import type { TableCall } from './table.ts'

/** Rows verified in one request. */
const PAGE_SIZE = 1000

type Chain = AnswerOf<'installation-audit.chains'>['data'][number]

interface ComparedHeads {
  organization_id: string
  organization: string
  faults: HeadFault[]
  /** Why the ledger could not be compared; null when it was. */
  failure: string | null
}

type UnrecordedRow = AnswerOf<'installation-audit-verification.unrecorded'>['data'][number]
type CheckpointFault = AnswerOf<'installation-audit-verification.checkpoints'>['faults'][number]

/**
 * Verifies all chains from their first record on, page by page, with the rows of usage and credits that were taken from
 * their records; then the chains against their ledgers, rows without a record, and the checkpoints. Ledgers write pending
 * records first, so that what happened up to now is covered; one that cannot changes nothing about the rest.
 */
export async function verifyAudit(call: TableCall): Promise<Outcome> {
  const file = call.options.text('file')
  if (file !== undefined) {
    // It reads with schemas and code of the ledger, which no other command loads.
    const { verifyExport } = await import('./verify-export.ts')
    return verifyExport(call, file)
  }
  const names = await organizationNames(call)
  const nameOf = (id: string) => names.get(id) ?? `(unknown ${id})`
  const only = call.options.text('organization')
  const wanted = only === undefined ? null : await call.find('organization', only)
  await flushLedgers(call, wanted === null ? [...names.keys()] : [wanted])
  const stored = (await call.gateway.call('installation-audit.chains', {})).data.filter(
    ({ organization_id: id }) => wanted === null || id === wanted,
  )
  const organizations = new Set([
    ...(wanted === null ? names.keys() : [wanted]),
    ...stored.map(({ organization_id: id }) => id),
  ])

  const heads: ComparedHeads[] = []
  for (const id of organizations) {
    call.progress(`comparing ${nameOf(id)} with its ledger`)
    heads.push(await compareHeads(call, id, nameOf(id)))
  }
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

async function flushLedgers({ gateway, note }: TableCall, organizationIds: string[]): Promise<void> {
  for (const id of organizationIds) {
    try {
      const { pending } = await patiently(() =>
        id === DEPLOYMENT
          ? gateway.call('installation-ledger.flush', {})
          : gateway.call('ledger.flush', { path: { organizationId: id } }),
      )
      if (pending !== 0)
        note(`The ledger of ${id} still holds what is not verified: ${counted(pending, 'record')}.`)
    } catch (error) {
      note(`The ledger of ${id} could not write what it holds: ${(error as Error).message}`)
    }
  }
}

async function compareHeads(
  { gateway }: TableCall,
  id: string,
  organization: string,
): Promise<ComparedHeads> {
  const compared = { organization_id: id, organization }
  try {
    const query = { organization_id: id }
    const { faults } = await patiently(() => gateway.call('installation-audit-verification.heads', { query }))
    return { ...compared, faults, failure: null }
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

async function verifyChain(
  { gateway, progress }: TableCall,
  chain: Chain,
  organization: string,
): Promise<VerifiedChain> {
  const { organization_id, shard } = chain
  const found = new Found<Fault>()
  let [after, verified] = [0, 0]
  let page: AnswerOf<'installation-audit-verification.chain'>
  do {
    const query = { organization_id, shard, after_sequence: after, limit: PAGE_SIZE }
    page = await patiently(() => gateway.call('installation-audit-verification.chain', { query }))
    if (found.first === null) verified = page.after_sequence + page.verified
    found.add(page.faults)
    after = page.to_sequence
    progress(`${organization} shard ${shard}: ${after} of ${chain.sequence} records`)
  } while (page.has_more)
  // The chain had this record a moment ago.
  if (after < chain.sequence) {
    const detail = `the chain should reach record ${chain.sequence}`
    found.add([{ sequence: after + 1, reason: 'missing', detail }])
  }
  const { first, faults, more } = found
  return {
    organization_id,
    organization,
    shard,
    verified,
    pruned_to: page.pruned_to,
    first_broken: first,
    faults,
    more_faults: more,
  }
}

async function findUnrecorded({ gateway }: TableCall, wanted: string | null): Promise<Found<UnrecordedRow>> {
  const found = new Found<UnrecordedRow>()
  const query = { ...(wanted !== null && { organization_id: wanted }), limit: PAGE_SIZE }
  for await (const { data } of gateway.pages('installation-audit-verification.unrecorded', { query })) {
    found.add(data)
  }
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

async function verifyCheckpoints(
  { gateway }: TableCall,
  wanted: string | null,
): Promise<VerifiedCheckpoints> {
  const found = new Found<CheckpointFault>()
  let checkpoints = 0
  const query = wanted === null ? {} : { organization_id: wanted }
  for await (const page of gateway.pages('installation-audit-verification.checkpoints', { query })) {
    checkpoints += page.checkpoints
    found.add(page.faults)
  }
  return { checkpoints, first_broken: found.first, faults: found.faults, more: found.more }
}

const checkpointSection = (verified: VerifiedCheckpoints) =>
  faultsSection(
    'checkpoints',
    verified,
    ({ checkpoint_id: id, reason, detail }) => `checkpoint ${id} (${reason}: ${detail})`,
    `checkpoints: ${verified.checkpoints === 0 ? 'none yet' : verified.checkpoints}`,
  )
