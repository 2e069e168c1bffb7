import * as z from 'zod'

/**
 * Forms in which the Responses surface answers: `headgate` as the interface describes it, `open_responses` as the
 * specification of Open Responses of 2026-04-24 does (https://www.openresponses.org/specification).
 */
export const COMPATIBILITIES = ['headgate', 'open_responses'] as const

export type Compatibility = (typeof COMPATIBILITIES)[number]

export const compatibility = z.enum(COMPATIBILITIES, `must be ${COMPATIBILITIES.join(' or ')}`)
