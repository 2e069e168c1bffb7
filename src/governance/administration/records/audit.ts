import type { Page, PageRequest } from '../../../wire/page-cursor.ts'
import { type Administration, recordView } from '../administration.ts'
import { type AuditFilter, type AuditRow, selectAuditRecords } from './store.ts'

/**
 * Shows audit records, newest first. Looking is recorded itself, before anything is shown.
 * @throws ApiError `internal` when that record cannot be stored.
 */
export async function viewAudit(
  administration: Administration,
  organizationId: string,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditRow>> {
  await recordView(administration, {
    organizationId,
    action: 'audit.viewed',
    resource: 'audit',
    detail: { filter, limit: page.limit },
  })
  return selectAuditRecords(administration.database, organizationId, filter, page)
}
