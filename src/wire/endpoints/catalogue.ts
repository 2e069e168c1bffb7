import * as z from 'zod'
import {
  modelReplacement,
  price,
  priceMembers,
  providerCreation,
  providerKind,
  providerUpdate,
} from '../catalogue.ts'
import { pageQuery, uuid } from '../management-fields.ts'
import { ROTATED_TABLES, vaultRotation } from '../vault.ts'
import { type Contract, count, list, time } from './contract.ts'

/** Schemas of the endpoints for providers, the model catalogue and the vault. */

/** The credential is write-only. */
const provider = z.strictObject({
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

/** The latest refusal of the gateway's credential, since which the provider has served no call. */
const providerWithHealth = provider.extend({
  health: z.enum(['ok', 'refuses_gateway', 'unknown']),
  refused_status: z.int().nullable(),
  refused_at: time.nullable(),
})

const model = z.strictObject({
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
  /** Best first. */
  routes: z.array(z.strictObject({ provider_id: uuid, provider: z.string(), upstream_model: z.string() })),
  disabled_at: time.nullable(),
  created_at: time,
})

export const catalogueContracts = {
  'providers.list': { query: pageQuery, answer: list(provider) },
  'providers.create': { body: providerCreation, answer: provider, status: 201, errors: ['unprocessable'] },
  'providers.show': { answer: providerWithHealth },
  'providers.change': { body: providerUpdate, answer: provider, errors: ['unprocessable'] },
  'providers.disable': { answer: provider },
  'models.list': { query: pageQuery, answer: list(model) },
  'models.show': { answer: model },
  'models.replace': { body: modelReplacement, answer: model, mayCreate: true, errors: ['unprocessable'] },
  'models.disable': { answer: model },
  'vault.rotate': {
    body: vaultRotation,
    answer: z.strictObject({
      key_id: z.string(),
      kind: z.enum(ROTATED_TABLES),
      resealed: count,
      failed: count,
      next_cursor: z.string().nullable(),
    }),
  },
} satisfies Record<string, Contract>
