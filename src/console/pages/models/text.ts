export const TEXT = {
  caption: 'Models that you may use',
  empty: 'There is no model that you may use. An administrator of your organization can grant one.',
  model: 'Model',
  context: 'Context, tokens',
  output: 'Output, tokens',
  capabilities: 'Capabilities',
  grantedBy: 'Granted by',
  more: 'Show more',
} as const
