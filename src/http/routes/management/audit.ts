import { createCheckpoint, listChains, viewAudit } from '../../../admin/audit.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
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
}

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
