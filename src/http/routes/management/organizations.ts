import { Hono } from 'hono'
import type * as z from 'zod'
import { type OrganizationRow, selectOrganizations } from '../../../admin/organizations.store.ts'
import { changeOrganization, createOrganization, readOrganization } from '../../../admin/organizations.ts'
import { organizationCreation, organizationListQuery, organizationUpdate } from '../../../wire/management.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, deploymentScope, pageRequest } from './request.ts'

/** `organizationScope` has checked that it exists. */
const ORGANIZATION = '/organizations/:organizationId'

const present = (row: OrganizationRow) => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  rate_limit_per_minute: row.rateLimitPerMinute,
  user_rate_limit_per_minute: row.userRateLimitPerMinute,
  ledger_shards: row.ledgerShards,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

const valuesOf = (body: z.infer<typeof organizationUpdate>) => ({
  name: body.name,
  rateLimitPerMinute: body.rate_limit_per_minute,
  userRateLimitPerMinute: body.user_rate_limit_per_minute,
  ledgerShards: body.ledger_shards,
  disabled: body.disabled,
})

export const organizationRoutes = new Hono<AppEnv>()
  .get('/organizations', query(organizationListQuery), async (context) => {
    const { slug, ...paging } = context.req.valid('query')
    const { database } = context.get('deps')
    const scope = context.get('administrator').organizationId
    const page = await selectOrganizations(database, scope, { slug }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(
    '/organizations',
    deploymentScope(),
    query(noQuery),
    jsonBody(organizationCreation),
    async (context) => {
      const { name, slug, ...limits } = context.req.valid('json')
      const values = { ...valuesOf(limits), name, slug }
      return context.json(present(await createOrganization(changeScope(context), values)), 201)
    },
  )
  .get(ORGANIZATION, query(noQuery), async (context) =>
    context.json(present(await readOrganization(changeScope(context)))),
  )
  .put(ORGANIZATION, query(noQuery), jsonBody(organizationUpdate), async (context) => {
    const values = valuesOf(context.req.valid('json'))
    return context.json(present(await changeOrganization(changeScope(context), values)))
  })
