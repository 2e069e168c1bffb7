import * as z from 'zod'
import { jsonCursor } from './page-cursor.ts'

/** Kinds of secrets that the vault seals, in the order of a rotation. */
export const ROTATED_TABLES = [
  'connections',
  'client_secrets',
  'providers',
  'webhook_secrets',
  'run_inputs',
  'identity_providers',
] as const
export type RotatedTable = (typeof ROTATED_TABLES)[number]

const position = z.strictObject({
  table: z.enum(ROTATED_TABLES),
  after: z
    .string()
    .regex(/^[0-9A-Za-z_-]{1,110}$/)
    .nullable(),
})
export type RotationPosition = z.infer<typeof position>

export const vaultRotation = z.strictObject({
  limit: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(500, 'must be at most 500')
    .default(100),
  cursor: jsonCursor(position).default({ table: 'connections', after: null }),
})
