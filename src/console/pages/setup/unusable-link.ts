import { codeOf } from '../../data/refusals.ts'

/** Whether the gateway does not take a setup link, or takes it no more. */
export const isUnusableLink = (error: unknown): boolean => codeOf(error) === 'setup_link_unusable'
