#pragma once
/* For tests: authorities, made by openssl req -x509. */

/* CN=bac sandbox test, twice, with different keys */
static const char pem_first[] = "-----BEGIN CERTIFICATE-----\n"
				"MIIBjDCCATOgAwIBAgIUfpzzBu/bO9tw/yyyWvDzc+zjR2kwCgYIKoZIzj0EAwIw\n"
				"GzEZMBcGA1UEAwwQYmFjIHNhbmRib3ggdGVzdDAgFw0yNjExMzAwMjI4NDZaGA8y\n"
				"MTI2MTEwNjAyMjg0NlowGzEZMBcGA1UEAwwQYmFjIHNhbmRib3ggdGVzdDBZMBMG\n"
				"ByqGSM49AgEGCCqGSM49AwEHA0IABG3/aPiLDyqk2BpFwxpyK8Dym6FwySJMAE3A\n"
				"bBH6Pir1put/0jptXLNO3pzL/yyfvKXvFtmhcTOwT27gCXW+zzyjUzBRMB0GA1Ud\n"
				"DgQWBBRqLq9hlffpSMYU+2GUiqjON6bocTAfBgNVHSMEGDAWgBRqLq9hlffpSMYU\n"
				"+2GUiqjON6bocTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIFlo\n"
				"eUGoqrJ7cDcG2AFVlCbFQ11LoXm5Y7gNJofKi7xgAiBO1knNZGD+sorbo/8PaaX1\n"
				"w2RXKBFBtmZ36h98RLaHmQ==\n"
				"-----END CERTIFICATE-----\n";
static const char pem_second[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBjDCCATOgAwIBAgIUJ9jGW0MMuF+AUkV1JS+Np6w7TPwwCgYIKoZIzj0EAwIw\n"
	"GzEZMBcGA1UEAwwQYmFjIHNhbmRib3ggdGVzdDAgFw0yNjExMzAwMjI4NDZaGA8y\n"
	"MTI2MTEwNjAyMjg0NlowGzEZMBcGA1UEAwwQYmFjIHNhbmRib3ggdGVzdDBZMBMG\n"
	"ByqGSM49AgEGCCqGSM49AwEHA0IABFEBahHOgmKpdY+meEzi7kxyUvkbyu+J7AaD\n"
	"4Uom+/tUtcrMUJB5twJSnenqNxu3siBIhctVKWyjBmNkm0ilu82jUzBRMB0GA1Ud\n"
	"DgQWBBR2VNjjIj8LRmjwR8MgUBFK12tJTzAfBgNVHSMEGDAWgBR2VNjjIj8LRmjw\n"
	"R8MgUBFK12tJTzAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCICi+\n"
	"5J2+F7bp7P4DPFtqFH4JFhzCzHSeIW5haLgaXTJ3AiAvnZeSztFnwzvFG8og3A3g\n"
	"GIlaSuNMaosSNUmKlH9SWA==\n"
	"-----END CERTIFICATE-----\n";

/* O=Two  Words , CN= Bac  SANDBOX and two letters with dots, as UTF-8 */
static const char pem_odd[] = "-----BEGIN CERTIFICATE-----\n"
			      "MIIBwDCCAWWgAwIBAgIUd7uE7TPvYoYFjb1rcXAboUS5viwwCgYIKoZIzj0EAwIw\n"
			      "NDEUMBIGA1UECgwLVHdvICBXb3JkcyAxHDAaBgNVBAMMEyBCYWMgIFNBTkRCT1gg\n"
			      "w5xuw68wIBcNMjYxMTMwMDIyODQ2WhgPMjEyNjExMDYwMjI4NDZaMDQxFDASBgNV\n"
			      "BAoMC1R3byAgV29yZHMgMRwwGgYDVQQDDBMgQmFjICBTQU5EQk9YIMOcbsOvMFkw\n"
			      "EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZE5p6F/0OybDDGP+JC5Y9hUDmGEOHGJF\n"
			      "PX7hfLjT6wSdGEwTcw/sJp77WlW4jij/WcVzPnE3X5DOn89nueyJ+qNTMFEwHQYD\n"
			      "VR0OBBYEFLD/fF6n9qL3sKJMZSNH/TAL3SbEMB8GA1UdIwQYMBaAFLD/fF6n9qL3\n"
			      "sKJMZSNH/TAL3SbEMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIh\n"
			      "ANn+Vxf6z/CqSk9bVkL+gK07Wq7jqti4bXN8XiHC9hRpAiEAysoDfy/GzLCLQjNl\n"
			      "srSTtra+Pur+RCdSpUupoqIzzu0=\n"
			      "-----END CERTIFICATE-----\n";

/* C=DE, O=A user, CN=A user */
static const char pem_user[] = "-----BEGIN CERTIFICATE-----\n"
			       "MIIBtTCCAVugAwIBAgIUC7Bv5xNmYz5p069NkUXBhzfplfgwCgYIKoZIzj0EAwIw\n"
			       "LzELMAkGA1UEBhMCREUxDzANBgNVBAoMBkEgdXNlcjEPMA0GA1UEAwwGQSB1c2Vy\n"
			       "MCAXDTI2MTEzMDAyMjg0NloYDzIxMjYxMTA2MDIyODQ2WjAvMQswCQYDVQQGEwJE\n"
			       "RTEPMA0GA1UECgwGQSB1c2VyMQ8wDQYDVQQDDAZBIHVzZXIwWTATBgcqhkjOPQIB\n"
			       "BggqhkjOPQMBBwNCAARmp7pJHqMt4mOM1D9dhu5+uD2RtOBtE5H++NY4iDsOOWif\n"
			       "X4p0/PzeXkBYx6Y2AlSko/5kIPF/aFczvYo3JNw3o1MwUTAdBgNVHQ4EFgQUfUNN\n"
			       "EmBxX7HVuzmwnkKkJjGc3eswHwYDVR0jBBgwFoAUfUNNEmBxX7HVuzmwnkKkJjGc\n"
			       "3eswDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAlnTmWQB0VP28\n"
			       "SzeJPTgZlZkv3BV0CPVVgvhfeuh7Y24CIGyVQHoCskyLNwmDsXttxkZud64fJ/oj\n"
			       "NSoiCjQ6JhOI\n"
			       "-----END CERTIFICATE-----\n";

/* OU=1, CN=x + O=y */
static const char pem_double[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBmzCCAUGgAwIBAgIUPWGAJjQRDo9OiFEM02Hc3fGyq6owCgYIKoZIzj0EAwIw\n"
	"IjEKMAgGA1UECwwBMTEUMAgGA1UEAwwBeDAIBgNVBAoMAXkwIBcNMjYxMTMwMDIy\n"
	"ODQ2WhgPMjEyNjExMDYwMjI4NDZaMCIxCjAIBgNVBAsMATExFDAIBgNVBAMMAXgw\n"
	"CAYDVQQKDAF5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEL9S2BUlToQ/OyOby\n"
	"whA3E6cux+bHOHct15kbXt0Bosc5dgOYF7/Bl9Dq9454TpvJ6313hNq0E/7kk2lw\n"
	"Ht3y3aNTMFEwHQYDVR0OBBYEFGCG8MbBaHvX4Zu/jJOURCwaIPEzMB8GA1UdIwQY\n"
	"MBaAFGCG8MbBaHvX4Zu/jJOURCwaIPEzMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI\n"
	"zj0EAwIDSAAwRQIgDlvbpZY41oKgL95O8v9o53HfvDOZnzjhtdsfK3Eef98CIQCz\n"
	"os0VxskAyJgZFN2r8L3YoTrzEoDCQBVIaVwxyHRP8Q==\n"
	"-----END CERTIFICATE-----\n";

/* openssl x509 -subject_hash */
#define HASH_FIRST "130a62ec"
#define HASH_ODD   "63ef26f1"
#define HASH_USER  "6839b16d"
