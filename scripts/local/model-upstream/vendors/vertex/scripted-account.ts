/** The key of a service account that the scripted Vertex knows. It opens nothing but it. */
const KEY = [
  'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCyENfmLXYKYC5Uya92UlGZL09Sc1E3ZTA2HXXgAW8h7UdlDg1q',
  'bGbAApgmhkEwopFk82BKEeG2KDlyxGCWiwFD5kb8UYQouhGaITwMRnWph3fqSbI8b3xf/fEwKC777qS2cPnEPcjZj7dcsGj2LcMw',
  'M4Fnfxutl/cWEef1QxEAyNL4ceWDj4yePZvDwnwhhPjygzoDdtZofi8AhaqaLEEu14DNbRHYcgAjaqnbHdVpoiSqFgf9OogTBctM',
  'hhOEe+TuQt2cqGgUnmfXKNTAIepA+pysudmcIozh4tYfqDur63MoKiyESLn6VPOXiedta8ihc6vFxwQw2VVYqlW2tsFdAgMBAAEC',
  'ggEAC/R1ik6jDi9G7QpdbWQ5dj9m4/I6Ea4JfpibwV5XR7/We0JmRC7i9yE1deCtn8ZKXKy6Wj65GLG6qanlkjXi79wWB/qxFMrp',
  'Q5/XmDtiyu79bg1kmgoiH4+9Ea6g+OkcxeLv4e0D/xdXCDIP2fdYk3PhzEEMaqs5O5IYMK9ABP1Zz7m4AmZK8BzE/DQC2Vjt8PSz',
  'YoMFU0COu2aDmxgcGsCXMousOEBrgLmTunqYpENwW+kouPPBri2XAPMfpfKpWxrHMoNvmfOdOeUpVm2I29QSf71CcE20jPIR7o1V',
  'XwQ+TQwPllVJ6puxoRwcdIA41qAAWafUusR3WustlB+rQQKBgQDv199IdXdls1GRZFFuLiWZQyBHUh1o9/WKf2eaLQdfcvYK7P61',
  'jHrQwM/CJVnKcB0ZgYBu2YJRfWPBzJHngRAcVjtCOuq941WVKq7GotAj8ImJWPhVIgGseKdiV1WFK5TTZbQPHGnMs3pqQ/061DS4',
  '8fpB0rccLCDo0WumlSXpLwKBgQC+D5xnScV0vco7MF9sIE1DLsRw4HP3x7JrBe6lRznftKAu8fONaBaeGMSJc8TKzu0JVaUnch7s',
  '7hydmW4WExyyYcvlFMmkwlG25DFBkjbR3wyidyT/f7Sb1cNuKS4t3rtRfPijUT7LxSGBIlfBCvq0/SgE2XObiF/dND8e4X5DMwKB',
  'gQDh8LCtJ8uEiPqsRp7Xdq2AxdWgmmCORBiRkhfdC9JIPpo+DKieCmqgQSL2uAzwQdGH95Ev28OCVOcm6DoCpniw2SMV7z64B3LW',
  'BNGE2lfNo4lNU/0M5e5BtZ+parBrtXSL+OE44wFgDyug88+YHdRU7c9dNs28wm12JeKNmS+PjQKBgBp4BBkiXfxnHg3mK7PcP8ZW',
  'cgciSyQ7zG45MkYUSEwOVKyVB40u7M9xtZVK6SIxdTNymQCIVSQ7+QI9xuYOHVX+Zq3tmjN22Hh3CSEPotDRlmnd2+o1N8roF0J1',
  'O7gpp76uf9YGz48DUiowxTXeOJISG4upWP9VG7yrtQqw7qufAoGABq9nBjdQech/XoVzsJ//nu+m7So6roAKrQXvwCf4vSRgZ8I3',
  '0Zfp77rmV+50HmYClrE7FX+xtfC/zvKJxpsjBtQ+rxdB+DLkTPwi6XGXPUOaABLQ9TuvZHqLC4h6DorC8fKBTCk+gREsHc8PMd5a',
  'dQDeyyqr+JNZHccxa9mS2HA=',
].join('')

/** The members of its key file. @param url of the scripted upstream. */
export const scriptedAccount = (url: string) => ({
  type: 'service_account',
  client_email: 'scripted@scripted-project.iam.gserviceaccount.com',
  private_key: `-----BEGIN PRIVATE KEY-----\n${KEY}\n-----END PRIVATE KEY-----\n`,
  private_key_id: 'scripted-key-id-0001',
  project_id: 'scripted-project',
  token_uri: `${url}/vendors/vertex/token`,
})
