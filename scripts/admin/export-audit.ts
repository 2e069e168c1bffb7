import { isDeepStrictEqual } from 'node:util'
import type { AnswerOf } from '../../src/client/management-client.ts'
import { counted } from '../../src/lib/counted.ts'
import type { EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import type { Outcome } from './command.ts'
import { AdminError } from './errors.ts'
import { patiently } from './gateway.ts'
import type { PathIds, TableCall } from './table.ts'

/** Records in one request. */
const PAGE_SIZE = 500

/** The endpoints that an export reads, of an organization or of the deployment. */
const SOURCES = {
  organization: {
    flush: 'ledger.flush',
    checkpoints: 'audit-export.checkpoints',
    heads: 'audit-export.heads',
    records: 'audit-export.records',
    unrecorded: 'audit-export.unrecorded',
  },
  deployment: {
    flush: 'installation-ledger.flush',
    checkpoints: 'installation-audit-export.checkpoints',
    heads: 'installation-audit-export.heads',
    records: 'installation-audit-export.records',
    unrecorded: 'installation-audit-export.unrecorded',
  },
} as const satisfies Record<string, Record<string, EndpointName>>

/**
 * Writes the records of an organization, or of the deployment, with their rows of usage and credits, its checkpoints and
 * the heads of its ledger: one JSON object a line. `audit verify --file` verifies it without a gateway.
 * @throws AdminError when retention removes records meanwhile: the heads would name records that the export has not.
 */
export async function exportAudit(call: TableCall): Promise<Outcome> {
  const { gateway, note, print, progress } = call
  // The endpoints of the deployment take the same without an organization, and answer with the same.
  const source = (call.options.flag('deployment') ? SOURCES.deployment : SOURCES.organization) as Source
  const path = await call.path()
  let lines = 0
  const write = (type: string, content: object) => {
    print(JSON.stringify({ type, ...content }))
    lines += 1
    if (lines % PAGE_SIZE === 0) progress(`${counted(lines, 'line')}`)
  }
  const { pending } = await gateway.call(source.flush, { path })
  if (pending !== 0) note(`The ledger still holds what is not exported: ${counted(pending, 'record')}.`)
  write('export', { version: 1, exported_at: new Date().toISOString() })
  for await (const { data } of gateway.pages(source.checkpoints, { path })) {
    for (const checkpoint of data) write('checkpoint', checkpoint)
  }
  // After the checkpoints: none of them names a record that the export does not reach.
  const heads = await gateway.call(source.heads, { path })
  write('heads', heads)
  for (const range of rangesOf(heads)) {
    for await (const record of recordsOf(call, source, path, range)) write('record', record)
  }
  for await (const { data } of gateway.pages(source.unrecorded, { path })) {
    for (const row of data) write('unrecorded', row)
  }
  const headsAfter = await gateway.call(source.heads, { path })
  if (!isDeepStrictEqual(prunedOf(headsAfter), prunedOf(heads))) {
    throw new AdminError('Retention has removed records during the export, which is not complete.', {
      hint: 'Export again.',
    })
  }
  print(JSON.stringify({ type: 'end', lines }))
  note(`${counted(lines, 'line')} exported.`)
  return { kind: 'printed' }
}

type Source = typeof SOURCES.organization

interface ChainRange {
  shard: number
  to: number
}

/** What the statement about the heads says of the chains, as far as an export needs it. */
interface StatedChains {
  chains: Array<{ shard: number; flushed: { sequence: number } }>
  stored: Array<{ shard: number; sequence: number }>
  pruned: object
}

const prunedOf = ({ statement }: AnswerOf<'audit-export.heads'>) =>
  (statement as unknown as StatedChains).pruned

/** Up to the records that the heads name; those that are appended meanwhile are left out. */
function rangesOf({ statement }: AnswerOf<'audit-export.heads'>): ChainRange[] {
  const { chains, stored } = statement as unknown as StatedChains
  return stored.map(({ shard, sequence }) => {
    const flushed = chains.find((chain) => chain.shard === shard)?.flushed.sequence ?? 0
    return { shard, to: Math.max(sequence, flushed) }
  })
}

async function* recordsOf({ gateway }: TableCall, source: Source, path: PathIds, { shard, to }: ChainRange) {
  let after = 0
  let page: AnswerOf<'audit-export.records'>
  do {
    const query = { shard, after_sequence: after, to_sequence: to, limit: PAGE_SIZE }
    page = await patiently(() => gateway.call(source.records, { path, query }))
    yield* page.data
    after = Number(page.data.at(-1)?.record.sequence ?? to)
  } while (page.has_more)
}
