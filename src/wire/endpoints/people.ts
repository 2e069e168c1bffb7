import * as z from 'zod'
import { compatibility } from '../compatibility.ts'
import {
  ENTITLEMENTS,
  grantCreation,
  grantListQuery,
  groupCreation,
  keyCreation,
  keyListQuery,
  keyUpdate,
  organizationCreation,
  organizationListQuery,
  organizationUpdate,
  rateLimit,
  role,
  scope,
  userCreation,
  userListQuery,
  userUpdate,
} from '../management.ts'
import { pageQuery, uuid } from '../management-fields.ts'
import { type Contract, count, deleted, list, time } from './contract.ts'

/** Schemas of the endpoints for organizations, users, groups, keys and rights to use models. */

const organization = z.strictObject({
  id: uuid,
  name: z.string(),
  slug: z.string(),
  rate_limit_per_minute: rateLimit,
  user_rate_limit_per_minute: rateLimit,
  ledger_shards: count,
  disabled_at: time.nullable(),
  created_at: time,
})

export const user = z.strictObject({
  id: uuid,
  email: z.string(),
  name: z.string(),
  role,
  rate_limit_per_minute: rateLimit,
  entitlements: z.array(z.enum(ENTITLEMENTS)),
  group_ids: z.array(uuid),
  disabled_at: time.nullable(),
  created_at: time,
})

const group = z.strictObject({ id: uuid, name: z.string(), members: count, created_at: time })

const key = z.strictObject({
  id: z.string(),
  user_id: uuid,
  label: z.string(),
  scopes: z.array(scope),
  compatibility,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  created_at: time,
})

const grant = z.strictObject({
  id: uuid,
  subject_type: z.enum(['organization', 'group', 'user', 'role']),
  subject_id: z.string(),
  model_id: z.string(),
  created_at: time,
})

export const peopleContracts = {
  'organizations.list': { query: organizationListQuery, answer: list(organization) },
  'organizations.create': {
    body: organizationCreation,
    answer: organization,
    status: 201,
    errors: ['unprocessable'],
  },
  'organizations.show': { answer: organization },
  'organizations.change': { body: organizationUpdate, answer: organization, errors: ['unprocessable'] },

  'users.list': { query: userListQuery, answer: list(user) },
  'users.create': { body: userCreation, answer: user, status: 201, errors: ['unprocessable'] },
  'users.show': { answer: user },
  'users.change': { body: userUpdate, answer: user, errors: ['unprocessable'] },
  'users.disable': { answer: user, errors: ['unprocessable'] },
  'users.entitle': { answer: user },
  'users.withdraw': { answer: user },

  'groups.list': { query: pageQuery, answer: list(group) },
  'groups.create': { body: groupCreation, answer: group, status: 201, errors: ['unprocessable'] },
  'groups.show': { answer: group },
  'groups.remove': { answer: deleted },
  'groups.members': { query: pageQuery, answer: list(user) },
  'groups.add': { answer: user },
  'groups.withdraw': { answer: user },

  'keys.list': { query: keyListQuery, answer: list(key) },
  'keys.create': {
    body: keyCreation,
    answer: key.extend({ key: z.string() }),
    status: 201,
    errors: ['unprocessable'],
    noStore: true,
  },
  'keys.show': { answer: key },
  'keys.change': { body: keyUpdate, answer: key },
  'keys.revoke': { answer: key },

  'grants.list': { query: grantListQuery, answer: list(grant) },
  'grants.create': { body: grantCreation, answer: grant, status: 201, errors: ['unprocessable'] },
  'grants.remove': { answer: deleted },
} satisfies Record<string, Contract>
