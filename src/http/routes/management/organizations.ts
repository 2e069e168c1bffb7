import { Hono } from 'hono'
import {
  changeOrganization,
  createOrganization,
  listOrganizations,
  type OrganizationRow,
  readOrganization,
} from '../../../governance/administration/organizations.ts'
import {
  noQuery,
  organizationCreation,
  organizationListQuery,
  organizationUpdate,
} from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { administrationOf, deploymentScope, idParameter, pageRequest } from './request.ts'

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

export const organizationRoutes = new Hono<AppEnv>()
  .get('/organizations', query(organizationListQuery), async (context) => {
    const parameters = context.req.valid('query')
    const scope = context.get('administrator').organizationId
    const page = await listOrganizations(
      administrationOf(context),
      scope,
      { slug: parameters.slug },
      pageRequest(parameters),
    )
    return context.json(listBody(page, present))
  })
  .post(
    '/organizations',
    deploymentScope(),
    query(noQuery),
    jsonBody(organizationCreation),
    async (context) => {
      const body = context.req.valid('json')
      const row = await createOrganization(administrationOf(context), {
        name: body.name,
        slug: body.slug,
        rateLimitPerMinute: body.rate_limit_per_minute,
        userRateLimitPerMinute: body.user_rate_limit_per_minute,
        ledgerShards: body.ledger_shards,
      })
      return context.json(present(row), 201)
    },
  )
  .get('/organizations/:organizationId', query(noQuery), async (context) => {
    const organizationId = idParameter('Organization', context.req.param('organizationId'))
    return context.json(present(await readOrganization(administrationOf(context), organizationId)))
  })
  .put('/organizations/:organizationId', query(noQuery), jsonBody(organizationUpdate), async (context) => {
    const organizationId = idParameter('Organization', context.req.param('organizationId'))
    const body = context.req.valid('json')
    const row = await changeOrganization(administrationOf(context), organizationId, {
      name: body.name,
      rateLimitPerMinute: body.rate_limit_per_minute,
      userRateLimitPerMinute: body.user_rate_limit_per_minute,
      ledgerShards: body.ledger_shards,
      disabled: body.disabled,
    })
    return context.json(present(row))
  })
