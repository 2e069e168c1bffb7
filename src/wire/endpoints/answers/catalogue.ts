import * as z from 'zod'
import { uuid } from '../../management-fields.ts'
import { percent, price, priceMembers, providerKind } from '../../model-catalogue.ts'
import { ROTATED_TABLES } from '../../vault.ts'
import { count, list, time } from './parts.ts'
import { namedGrant } from './people.ts'

/** Schemas of the endpoints for providers, the model catalogue and the vault. */

/** The credential is write-only. */
const provider = z
  .strictObject({
    id: uuid,
    name: z.string(),
    kind: providerKind,
    base_url: z.string(),
    organization_id: uuid.nullable(),
    allowed_members: z.array(z.string()),
    allow_unpriced: z.boolean(),
    credential_set: z.literal(true),
    disabled_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Provider' })

/** The latest refusal of the gateway's credential, since which the provider has served no call. */
const providerWithHealth = provider
  .extend({
    health: z.enum(['ok', 'refuses_gateway', 'unknown']),
    refused_status: z.int().nullable(),
    refused_at: time.nullable(),
  })
  .meta({ id: 'ProviderWithHealth' })

/** What callers of a model see of it. */
const publicModel = {
  id: z.string(),
  owned_by: z.string(),
  context_window: count,
  max_output_tokens: count,
  prices: z.strictObject({
    ...priceMembers,
    cache_read: price,
    cache_write_5_minutes: price,
    cache_write_1_hour: price,
  }),
  capabilities: z.array(z.string()),
}

const organizationModel = z
  .strictObject({ ...publicModel, granted_by: z.array(namedGrant) })
  .meta({ id: 'OrganizationModel' })

const model = z
  .strictObject({
    ...publicModel,
    /** Best first. */
    routes: z.array(
      z.strictObject({
        provider_id: uuid,
        provider: z.string(),
        upstream_model: z.string(),
        price_percent: percent,
      }),
    ),
    disabled_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Model' })

export const catalogueAnswers = {
  'providers.list': list(provider),
  'providers.create': provider,
  'providers.show': providerWithHealth,
  'providers.change': provider,
  'providers.disable': provider,
  'organization-models.list': list(organizationModel),
  'models.list': list(model),
  'models.show': model,
  'models.replace': model,
  'models.disable': model,
  'vault.rotate': z.strictObject({
    key_id: z.string(),
    kind: z.enum(ROTATED_TABLES),
    resealed: count,
    failed: count,
    next_cursor: z.string().nullable(),
  }),
}
