import { counted } from '../../src/lib/counted.ts'
import type { Call, Outcome } from './command.ts'
import { type Item, withQuery } from './gateway-client.ts'
import { organizationPath } from './ids-by-name.ts'
import { eachPage } from './verify-audit.ts'

/** Records in one request. */
const PAGE_SIZE = '500'

/** The chains of an organization at the beginning of an export, as `GET …/audit/export/heads` returns them. */
export interface ExportedHeads {
  statement: {
    organizationId: string
    chains: Array<{ shard: number; flushed: { sequence: number } }>
    stored: Array<{ shard: number; sequence: number }>
  }
}

/**
 * Writes the records of an organization, or of the deployment, with their rows of usage and credits, its checkpoints and
 * the heads of its ledger: one JSON object a line. `audit verify --file` verifies it without a gateway.
 */
export async function exportAudit(call: Call): Promise<Outcome> {
  const { gateway, note, print } = call
  const base = call.options.flag('deployment') ? '' : await organizationPath(call)
  let lines = 0
  const write = (type: string, content: Item) => {
    print(JSON.stringify({ type, ...content }))
    lines += 1
  }
  const { pending } = await gateway.request('POST', `${base}/ledger/flush`)
  if (pending !== 0)
    note(`The ledger still holds what is not exported: ${counted(Number(pending), 'record')}.`)
  write('export', { version: 1, exported_at: new Date().toISOString() })
  await eachPage(call, `${base}/audit/export/checkpoints`, {}, ({ data }) => {
    for (const checkpoint of data as Item[]) write('checkpoint', checkpoint)
  })
  // After the checkpoints: none of them names a record that the export does not reach.
  const heads = await gateway.request('GET', `${base}/audit/export/heads`)
  write('heads', heads)
  for (const range of rangesOf(heads as unknown as ExportedHeads)) {
    await exportChain(call, base, range, (record) => write('record', record))
  }
  await eachPage(call, `${base}/audit/export/unrecorded`, {}, ({ data }) => {
    for (const row of data as Item[]) write('unrecorded', row)
  })
  print(JSON.stringify({ type: 'end', lines }))
  note(`${counted(lines, 'line')} exported.`)
  return { kind: 'printed' }
}

interface ChainRange {
  shard: number
  to: number
}

/** Up to the records that the heads name; those that are appended meanwhile are left out. */
function rangesOf({ statement: { chains, stored } }: ExportedHeads): ChainRange[] {
  return stored.map(({ shard, sequence }) => {
    const flushed = chains.find((chain) => chain.shard === shard)?.flushed.sequence ?? 0
    return { shard, to: Math.max(sequence, flushed) }
  })
}

async function exportChain(
  { gateway }: Call,
  base: string,
  { shard, to }: ChainRange,
  write: (record: Item) => void,
): Promise<void> {
  let after = 0
  let page: Item
  do {
    const range = { shard: String(shard), after_sequence: String(after), to_sequence: String(to) }
    page = await gateway.request(
      'GET',
      withQuery(`${base}/audit/export/records`, { ...range, limit: PAGE_SIZE }),
    )
    const records = page.data as Array<Item & { record: { sequence: number } }>
    for (const record of records) write(record)
    after = records.at(-1)?.record.sequence ?? to
  } while (page.has_more === true)
}
