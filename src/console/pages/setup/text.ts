export const TEXT = {
  title: 'Create your passkey',
  noLink: 'This address has no setup link.',
  unusable: 'This setup link has expired, was used, or was replaced.',
  renew: 'An owner or an administrator of your organization can make another one for you.',
  name: 'Name',
  organization: 'Organization',
  role: 'Role',
  device: 'Name of this passkey',
  defaultDevice: 'This device',
  create: 'Create passkey',
  company: (host: string) => `Continue with ${host}`,
} as const
