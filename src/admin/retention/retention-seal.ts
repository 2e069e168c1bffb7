import * as z from 'zod'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../lib/crypto.ts'
import { type RetentionSettings, retentionSettings } from '../../wire/retention.ts'

/**
 * The settings of retention are under a MAC of a key pepper, as its statements are: the sweep signs for what it removes, so that a change
 * of the settings in the database alone must not make it remove anything.
 */

const retentionSeal = z.strictObject({
  /** When the settings were stored: after the audit record of their change. */
  at: z.iso.datetime(),
  pepperId: z.string(),
  mac: z.string(),
})
export type RetentionSeal = z.infer<typeof retentionSeal>

/** The settings of an organization as Postgres has them: anything may be in them. */
export interface StoredRetention {
  organizationId: string
  retention: unknown
  seal: unknown
  /** Of the last audit record of a change of the settings, as far as Postgres has it; null without one. */
  changedAt: Date | null
}

const sealedText = (organizationId: string, settings: RetentionSettings, at: string) =>
  `retention-settings\n${canonicalJson({ organizationId, settings, at })}`

/** Puts the settings of an organization under a MAC of the current key pepper. @param at now; not before the record of the change. */
export function sealRetention(
  peppers: KeyRing,
  organizationId: string,
  settings: RetentionSettings,
  at: Date,
): RetentionSeal {
  const { id: pepperId, key } = currentKey(peppers)
  const time = at.toISOString()
  return { at: time, pepperId, mac: hmacSha256Hex(key, sealedText(organizationId, settings, time)) }
}

/**
 * @returns the settings, null where none were ever set; what is wrong with them, if they are not what was last set for this organization.
 */
export function verifyRetention(
  peppers: KeyRing,
  { organizationId, retention, seal, changedAt }: StoredRetention,
): { settings: RetentionSettings | null } | { fault: string } {
  if (retention === null && seal === null) {
    return changedAt === null ? { settings: null } : { fault: 'settings that were set are missing' }
  }
  const settings = retentionSettings.safeParse(retention)
  if (!settings.success) return { fault: 'the settings are malformed' }
  const parsed = retentionSeal.safeParse(seal)
  if (!parsed.success) return { fault: 'the settings have no MAC' }
  const { at, pepperId, mac } = parsed.data
  const key = peppers.get(pepperId)
  if (!key) return { fault: `the pepper ${pepperId} of the settings is not configured` }
  if (!secretsEqual(mac, hmacSha256Hex(key, sealedText(organizationId, settings.data, at)))) {
    return { fault: 'the MAC of the settings is wrong' }
  }
  if (changedAt !== null && changedAt > new Date(at)) return { fault: 'the settings were changed since' }
  return { settings: settings.data }
}
