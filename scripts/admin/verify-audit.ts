import { counted } from '../../src/lib/counted.ts'
import type { Call, Outcome } from './command.ts'
import { AdminError, type Item, withQuery } from './connection.ts'
import { organizationId } from './names.ts'

/** Records verified in one request. */
const PAGE_SIZE = '1000'

/** The organization id under which changes to the deployment itself are recorded. */
const DEPLOYMENT = '00000000-0000-0000-0000-000000000000'

interface Chain {
  organization_id: string
  shard: number
  sequence: number
}

interface FirstBroken {
  sequence: number
  reason: string
  detail: string
}

interface VerifiedChain {
  organization_id: string
  organization: string
  shard: number
  verified: number
  first_broken: FirstBroken | null
}

interface CheckpointResult {
  ok: boolean
  checkpoints: number | null
  first_broken: { checkpoint_id: string; reason: string; detail: string } | null
}

/**
 * Verifies all chains from their first record on, page by page, then the checkpoints. Ledgers write what they hold
 * first, so that what happened up to now is covered; one that cannot is told and changes nothing about the rest.
 */
export async function verifyAudit(call: Call): Promise<Outcome> {
  const names = await organizationNames(call)
  const only = call.options.text('organization')
  const wanted = only === undefined ? null : await organizationId(call, only)
  await flushLedgers(call, wanted === null ? [...names.keys()] : [wanted])
  const all = (await call.connection.request('GET', '/audit/chains')).data as Chain[]
  const chains: VerifiedChain[] = []
  for (const chain of all.filter(({ organization_id: id }) => wanted === null || id === wanted)) {
    chains.push(await verifyChain(call, chain, names.get(chain.organization_id) ?? '(unknown)'))
  }
  const checkpoints = (await call.connection.request(
    'GET',
    '/audit/checkpoints/verify',
  )) as unknown as CheckpointResult
  const ok = checkpoints.ok && chains.every((chain) => chain.first_broken === null)
  return {
    kind: 'report',
    lines: [...chains.map(chainLine), checkpointLine(checkpoints), ok ? 'intact' : 'BROKEN'],
    item: { ok, chains, checkpoints },
    exitCode: ok ? 0 : 3,
  }
}

async function organizationNames({ connection }: Call): Promise<Map<string, string>> {
  const { items } = await connection.list('/organizations', {}, Number.MAX_SAFE_INTEGER)
  const names = items.map(({ id, slug }) => [String(id), String(slug)] as const)
  return new Map([[DEPLOYMENT, '(deployment)'], ...names])
}

async function flushLedgers({ connection, note }: Call, organizationIds: string[]): Promise<void> {
  for (const id of organizationIds) {
    const path = id === DEPLOYMENT ? '/ledger/flush' : `/organizations/${id}/ledger/flush`
    try {
      const { pending } = await connection.request('POST', path)
      if (pending !== 0)
        note(`The ledger of ${id} still holds what is not verified: ${counted(Number(pending), 'record')}.`)
    } catch (error) {
      note(`The ledger of ${id} could not write what it holds: ${(error as Error).message}`)
    }
  }
}

async function verifyChain(call: Call, chain: Chain, organization: string): Promise<VerifiedChain> {
  const { organization_id, shard } = chain
  let after = 0
  let page: Item
  do {
    const query = { organization_id, shard: String(shard), after_sequence: String(after), limit: PAGE_SIZE }
    page = await call.connection.request('GET', withQuery('/audit/verify', query))
    if (typeof page.to_sequence !== 'number') throw new AdminError('the gateway did not say what it verified')
    after = page.to_sequence
  } while (page.has_more === true && page.first_broken === null)
  const broken = page.first_broken as FirstBroken | null
  return {
    organization_id,
    organization,
    shard,
    verified: after,
    first_broken: broken ?? cutOff(chain, after),
  }
}

/** The chain had this record a moment ago. */
function cutOff({ sequence }: Chain, verified: number): FirstBroken | null {
  if (verified >= sequence) return null
  return { sequence: verified + 1, reason: 'missing', detail: `the chain should reach record ${sequence}` }
}

function chainLine({ organization, shard, verified, first_broken: broken }: VerifiedChain): string {
  const range = verified === 0 ? 'no records' : `records 1 to ${verified}`
  const name = `${organization} shard ${shard}`
  if (broken === null) return `ok      ${name}: ${range}`
  const { sequence, reason, detail } = broken
  return `BROKEN  ${name}: ${range} intact; first broken record: ${sequence} (${reason}: ${detail})`
}

function checkpointLine({ checkpoints, first_broken: broken }: CheckpointResult): string {
  if (broken === null) {
    return checkpoints === 0
      ? 'ok      checkpoints: none yet'
      : `ok      checkpoints: the newest ${checkpoints}`
  }
  return `BROKEN  checkpoint ${broken.checkpoint_id} (${broken.reason}: ${broken.detail})`
}
