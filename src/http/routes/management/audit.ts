import { createCheckpoint, listChains, viewAudit } from '../../../admin/audit.ts'
import { compareLedger, reflushLedger } from '../../../admin/ledger-check.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import type { KeptFrom } from '../../../ledger/records/chain.ts'
import type { AuditRecordRow } from '../../../ledger/records/read-records.store.ts'
import { HOME_SHARD } from '../../../ledger/shards/shards.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AuditQuery } from '../../../wire/records.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/** A record as the API shows it. */
export const presentRecord = (row: AuditRecordRow) => ({
  id: row.id,
  shard: row.shard,
  sequence: row.sequence,
  kind: row.kind,
  at: row.at,
  request_id: row.requestId,
  user_id: row.userId,
  key_id: row.keyId,
  surface: row.surface,
  action: row.action,
  model: row.modelId,
  status: row.status,
  credits_settled: row.creditsSettled,
  previous_hash: row.previousHash,
  hash: row.hash,
  record: readBody(row.body),
})

/** A body that was tampered with need not be JSON, and is shown all the same. */
function readBody(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

/** Chains of an organization; the deployment's own changes are a chain as well. */
export const auditHandlers: HandlersOf<'audit' | 'ledger' | 'installation-audit' | 'installation-ledger'> = {
  'audit.list': ({ scope, query }) => auditPage(scope, query),
  'audit.chains': ({ scope }) => chains(scope, scope.organizationId),
  'ledger.flush': ({ scope }) => flush(scope),
  'installation-audit.list': ({ scope, query }) => auditPage(scope, query),
  'installation-audit.chains': ({ scope }) => chains(scope, null),
  'installation-audit.checkpoint': async ({ scope }) => {
    const { id, at, heads } = await createCheckpoint(scope)
    return { id, at, chains: heads.length }
  },
  'installation-ledger.flush': ({ scope }) => flush(scope),
  'installation-ledger.check': async ({ scope, query }) => {
    const { organization_id = DEPLOYMENT_ORGANIZATION_ID } = query
    const compared = await compareLedger(scope, organization_id)
    const ok = compared.every(({ behind, balanceAgrees }) => behind === 0 && balanceAgrees !== false)
    return { organization_id, ok, shards: compared.map(presentCompared) }
  },
  'installation-ledger.reflush': async ({ scope, body }) => {
    const { organization_id = DEPLOYMENT_ORGANIZATION_ID, shard = null, from_sequence: from = null } = body
    const shards = await reflushLedger(scope, organization_id, { shard, from })
    return { organization_id, shards: shards.map(presentReflushed) }
  },
}

function presentCompared({
  chain,
  stored,
  behind,
  storedBalance,
  balanceAgrees,
}: Awaited<ReturnType<typeof compareLedger>>[number]) {
  const { shard, head, flushed, flushedBalance } = chain
  return {
    shard,
    head: head.sequence,
    confirmed: flushed.sequence,
    stored,
    behind,
    pending: head.sequence - flushed.sequence,
    kept_from: presentKept(chain),
    balance: { ledger: flushedBalance, stored: storedBalance, agrees: balanceAgrees },
  }
}

function presentReflushed(reflushed: Awaited<ReturnType<typeof reflushLedger>>[number]) {
  const { shard, head, confirmed, stored, again, pending, lost, conflict } = reflushed
  return { shard, head, confirmed, stored, again, pending, lost, conflict, kept_from: presentKept(reflushed) }
}

const presentKept = ({ keptFrom }: { keptFrom: KeptFrom | null }) =>
  keptFrom && { sequence: keptFrom.sequence, at: new Date(keptFrom.at) }

async function auditPage(scope: ChangeScope, { limit, cursor, ...filter }: AuditQuery) {
  return listBody(await viewAudit(scope, filter, pageRequest({ limit, cursor })), presentRecord)
}

const flush = ({ ledgerOf, organizationId }: ChangeScope) => ledgerOf(organizationId, HOME_SHARD).flush()

async function chains(scope: ChangeScope, organizationId: string | null) {
  const heads = await listChains(scope, organizationId)
  return {
    data: heads.map((head) => ({
      organization_id: head.organizationId,
      shard: head.shard,
      sequence: head.sequence,
      hash: head.hash,
    })),
    has_more: false,
    next_cursor: null,
  }
}
