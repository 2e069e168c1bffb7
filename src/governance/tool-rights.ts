/** Families of the tools that this service runs itself. A family is switched on or off as a whole. */
export const TOOL_FAMILIES = ['shell', 'files', 'web_search', 'browser'] as const
export type ToolFamily = (typeof TOOL_FAMILIES)[number]

/**
 * The hosts that tools may reach. An entry is a host name, `*.` and a domain for all names below it, or `*`. `deny` wins.
 * The guarded fetch refuses private and internal addresses whatever stands here.
 */
export interface EgressRules {
  allow: readonly string[]
  deny: readonly string[]
}

/** What the tools of a caller may do: the rules of its organization, groups and key together. */
export interface ToolRights {
  /** Families that are switched off. */
  off: readonly ToolFamily[]
  /** Of web search and browser. */
  web: EgressRules
  /** Of network commands in the shell. */
  shell: EgressRules
}

/** The rights of a caller without rules: every tool, the public web for pages, no network for the shell. */
export const DEFAULT_TOOL_RIGHTS: ToolRights = {
  off: [],
  web: { allow: ['*'], deny: [] },
  shell: { allow: [], deny: [] },
}

/** @param host in lower case, without a trailing dot. */
export function isHostAllowed({ allow, deny }: EgressRules, host: string): boolean {
  const covers = (entry: string) =>
    entry === '*' || entry === host || (entry.startsWith('*.') && host.endsWith(entry.slice(1)))
  return allow.some(covers) && !deny.some(covers)
}
