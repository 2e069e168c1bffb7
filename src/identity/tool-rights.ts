import type { Principal } from './principal.ts'
import { keyIdOf } from './principal.ts'

/**
 * Families of the tools that this service runs itself. A family is switched on or off as a whole. `platform` has the tools
 * of the MCP gateway; the others are offered by responses.
 */
export const TOOL_FAMILIES = ['shell', 'files', 'web_search', 'browser', 'platform'] as const
export type ToolFamily = (typeof TOOL_FAMILIES)[number]

/**
 * The hosts that tools may reach. An entry is a host name, `*.` and a domain for all names below it, or `*`. `deny` wins. The
 * guarded fetch refuses private and internal addresses whatever these rules allow.
 */
export interface EgressRules {
  allow: readonly string[]
  deny: readonly string[]
}

/** The callers of an organization for which tools are switched off. */
type ToolSubject =
  | { subject_type: 'organization' }
  | { subject_type: 'group' | 'user' | 'key'; subject_id: string }

/** The calls of an integration that need the caller's approval in responses: those that may change something, or all. */
export interface ApprovalRule {
  /** The public id of the integration, or `*`. */
  integration: string
  calls: 'effects' | 'all'
}

/** The rules of an organization for its tools, as its administrators write them (`docs/tools.md`). */
export interface ToolSettings {
  off: ReadonlyArray<ToolSubject & { tools: readonly ToolFamily[] }>
  /** Rules for web search and the browser. */
  web: EgressRules
  /** Rules for network commands in the shell. */
  shell: EgressRules
  /** Approval rules; none when left out. */
  approvals?: readonly ApprovalRule[]
}

/** Every tool, the public web for pages, no network for the shell. */
export const DEFAULT_TOOL_SETTINGS = {
  off: [],
  web: { allow: ['*'], deny: [] },
  shell: { allow: [], deny: [] },
  approvals: [],
} as const satisfies ToolSettings

/** The tool rights of one caller. */
export interface ToolRights {
  /** Families that are switched off. */
  off: readonly ToolFamily[]
  web: EgressRules
  shell: EgressRules
  approvals: readonly ApprovalRule[]
}

/** Computes the tool rights of one caller. A tool is off when any rule switches it off. */
export function toolRightsOf(
  { off, web, shell, approvals = [] }: ToolSettings,
  caller: Pick<Principal, 'groupIds' | 'userId' | 'credential'>,
): ToolRights {
  const subjects = { user: caller.userId, key: keyIdOf(caller) }
  const concerns = (subject: ToolSubject) => {
    if (subject.subject_type === 'organization') return true
    if (subject.subject_type === 'group') return caller.groupIds.includes(subject.subject_id)
    return subjects[subject.subject_type] === subject.subject_id
  }
  const switchedOff = off.filter(concerns).flatMap(({ tools }) => tools)
  return { off: TOOL_FAMILIES.filter((family) => switchedOff.includes(family)), web, shell, approvals }
}

/** @param host in lower case, without a trailing dot. */
export function isHostAllowed({ allow, deny }: EgressRules, host: string): boolean {
  const covers = (entry: string) =>
    entry === '*' || entry === host || (entry.startsWith('*.') && host.endsWith(entry.slice(1)))
  return allow.some(covers) && !deny.some(covers)
}
