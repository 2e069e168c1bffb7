import { createCheckpoint, listChains, viewAudit } from '../../../admin/audit.ts'
import type { Administration } from '../../../ledger/changes/audited-change.ts'
import type { AuditRecordRow } from '../../../ledger/records/read-records.store.ts'
import { HOME_SHARD } from '../../../ledger/shards/shards.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AuditQuery } from '../../../wire/records.ts'
import { pageRequest } from './administration.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = (row: AuditRecordRow) => ({
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
  'audit.list': ({ administration, query }) => auditPage(administration, query),
  'audit.chains': ({ administration }) => chains(administration, administration.organizationId),
  'ledger.flush': ({ administration }) => flush(administration),
  'installation-audit.list': ({ administration, query }) => auditPage(administration, query),
  'installation-audit.chains': ({ administration }) => chains(administration, null),
  'installation-audit.checkpoint': async ({ administration }) => {
    const { id, at, heads } = await createCheckpoint(administration)
    return { id, at, chains: heads.length }
  },
  'installation-ledger.flush': ({ administration }) => flush(administration),
}

async function auditPage(administration: Administration, { limit, cursor, ...filter }: AuditQuery) {
  return listBody(await viewAudit(administration, filter, pageRequest({ limit, cursor })), present)
}

const flush = ({ ledgerOf, organizationId }: Administration) => ledgerOf(organizationId, HOME_SHARD).flush()

async function chains(administration: Administration, organizationId: string | null) {
  const heads = await listChains(administration, organizationId)
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
